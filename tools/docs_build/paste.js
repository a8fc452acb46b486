// The box of the first page: what is pasted goes to the page that reads it, within this browser; nothing is sent.
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form.paste");
  if (!form) return;
  event.preventDefault();
  try {
    sessionStorage.setItem("oomdoctor.pasted", form.querySelector("textarea").value);
  } catch {
    // Without storage the page opens empty.
  }
  location.href = form.querySelector("a").href;
});
