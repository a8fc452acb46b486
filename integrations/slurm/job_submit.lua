-- Warns users who submit a job that has repeatedly run out of memory. It changes and rejects nothing, and makes no queries: it reads one
-- small file written by `oomdoctor triage warnings --output FILE` (user, job name, number of failures, what to do; tab-separated).
-- A site with its own job_submit.lua can call oomdoctor_warn(job_desc) in its slurm_job_submit.

local FILE = "/etc/oomdoctor/warnings.tsv"
local MOST_BYTES = 262144

local function without_number(name)
    return (name:gsub("[-_.]?%d+$", ""))
end

local function known(user, name)
    local file = io.open(FILE, "r")
    if file == nil then
        return nil
    end
    local text = file:read(MOST_BYTES) or ""
    file:close()
    for line in text:gmatch("[^\n]+") do
        local who, what, count, advice = line:match("^([^\t]*)\t([^\t]*)\t(%d+)\t([^\t]*)$")
        if who == user and (what == name or what == without_number(name)) then
            return count, advice
        end
    end
    return nil
end

function oomdoctor_warn(job_desc)
    local user, name = job_desc.user_name, job_desc.name
    if type(user) ~= "string" or type(name) ~= "string" then
        return
    end
    local count, advice = known(user, name)
    if count ~= nil then
        slurm.log_user("oomdoctor: %s jobs like %s ran out of memory: %s", count, name, advice)
    end
end

function slurm_job_submit(job_desc, part_list, submit_uid)
    pcall(oomdoctor_warn, job_desc)
    return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
    return slurm.SUCCESS
end
