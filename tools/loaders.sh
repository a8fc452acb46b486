#!/bin/sh
# Makes an interpreter that has the frameworks, for tests/configs/edit/test_framework_loaders.py: tools/loaders.sh [FOLDER, else .loaders]
#
# No two of them want the same versions, and several want a card: they come without what they depend on, and then gets installed
# what their parsers import.
set -e
folder=${1:-.loaders}
python3 -m venv "$folder"
"$folder/bin/pip" install -q --no-warn-conflicts torch==2.13.0
"$folder/bin/pip" install -q --no-warn-conflicts transformers accelerate deepspeed peft trl datasets omegaconf ruamel.yaml triton
"$folder/bin/pip" install -q --no-warn-conflicts --no-deps llamafactory==0.9.5 ms-swift==4.6.0 axolotl==0.19.0 sglang==0.5.23 vllm==0.33.0 \
    apache-tvm-ffi compressed-tensors xgrammar
"$folder/bin/pip" install -q --no-warn-conflicts addict aiohttp cachetools cbor2 cloudpickle colorama fastapi ipython json_repair llguidance \
    modelscope msgspec numba openai openai-harmony orjson partial-json-parser pillow posthog prometheus_client pybase64 pyzmq requests uvloop
echo "OOMDOCTOR_LOADERS=$folder/bin/python"
