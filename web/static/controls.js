// The person's hands: mute, push-to-talk, typed words, stop, devices, camera, pictures, and keys.

import { find, make, takesKeys } from "./dom.js";
import { remember, wish } from "./wishes.js";

const CONTROLS = "button, summary, a, input, select, textarea, [role=listbox]";
const PICTURE_MOST = 8_000_000; // bytes of a file that is worth reading

export class Controls {
  /** `on`: {call(): Call | null, picture(url, name), notice(words), panel(), sheet(): boolean}. */
  constructor(on) {
    this.on = on;
    this.live = false;
    this.mode = "open";
    this.view = Object.fromEntries(
      [
        "talk",
        "mute",
        "ptt",
        "text",
        "send",
        "interrupt",
        "camera",
        "picture",
        "picture-file",
        "device",
        "preview",
        "help-box",
        "keys-on",
        "read-on",
      ].map((id) => [id, find(id)])
    );
    this.bindHands();
    this.bindTalk();
    this.bindPictures();
    this.bindHelp();
    document.addEventListener("keydown", (event) => this.keyDown(event), { capture: true });
    document.addEventListener("keyup", (event) => this.keyUp(event), { capture: true });
    for (const leave of ["blur", "pagehide"])
      window.addEventListener(leave, () => this.talk(false));
  }

  get call() {
    return this.on.call();
  }

  get device() {
    return this.view.device.value || wish("device", null);
  }

  get deviceName() {
    return this.view.device.selectedOptions[0]?.textContent ?? "";
  }

  bindHands() {
    const { mute, interrupt, text, device } = this.view;
    mute.addEventListener("click", () => this.mute(!this.call?.muted));
    interrupt.addEventListener("click", () => this.interrupt());
    find("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      const words = text.value.trim();
      if (!words || !this.live) return;
      this.call.send({ t: "say", text: words });
      text.value = "";
    });
    device.addEventListener("change", async () => {
      const worked = await this.call?.useDevice(device.value || null);
      if (worked !== false) remember("device", device.value || null);
      this.enable(this.live);
    });
  }

  bindTalk() {
    const { ptt } = this.view;
    for (const input of document.querySelectorAll('input[name="mode"]')) {
      input.addEventListener("change", () => this.setMode(input.value));
    }
    ptt.addEventListener("pointerdown", (event) => {
      ptt.setPointerCapture(event.pointerId);
      this.talk(true);
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      ptt.addEventListener(end, () => this.talk(false));
    }
    ptt.addEventListener("contextmenu", (event) => event.preventDefault()); // a long touch
    ptt.addEventListener("keydown", (event) => event.key === "Enter" && this.talk(true));
    ptt.addEventListener("keyup", (event) => event.key === "Enter" && this.talk(false));
    ptt.addEventListener("blur", () => this.talk(false));
  }

  bindPictures() {
    const { camera, picture, preview, "picture-file": file } = this.view;
    camera.addEventListener("click", async () => {
      const { call } = this;
      const on = await call.camera(camera.getAttribute("aria-pressed") !== "true");
      camera.setAttribute("aria-pressed", String(on === true));
      const stream = on ? call.camera_?.preview : null;
      preview.hidden = !stream;
      preview.srcObject = stream ?? null;
      if (stream) preview.play().catch(() => (preview.hidden = true));
    });
    picture.addEventListener("click", () => file.click());
    file.addEventListener("change", () => this.sendPicture(file));
  }

  async sendPicture(input) {
    const [file] = input.files;
    input.value = "";
    if (!file || !this.live) return;
    if (file.size > PICTURE_MOST)
      return this.on.notice("This picture is over 8 MB. Take a smaller one.");
    if ((await this.call.sendImage(file)) === false) return;
    const reader = new FileReader();
    reader.onload = () => this.on.picture(reader.result, file.name);
    reader.readAsDataURL(file);
  }

  bindHelp() {
    const { "help-box": box, "keys-on": keys, "read-on": read } = this.view;
    find("help").addEventListener("click", () => box.showModal());
    box.addEventListener("click", (event) => event.target === box && box.close());
    keys.checked = wish("keys", true);
    keys.addEventListener("change", () => remember("keys", keys.checked));
    read.checked = wish("read", false);
    read.addEventListener("change", () => {
      remember("read", read.checked);
      this.on.read(read.checked);
    });
    this.on.read(read.checked);
  }

  /** What can be used follows the call. */
  enable(live) {
    const { view, call } = this;
    this.live = live;
    const hears = live && call?.hasMicrophone;
    for (const name of ["text", "send", "interrupt", "camera", "picture"])
      view[name].disabled = !live;
    for (const name of ["mute", "ptt"]) view[name].disabled = !hears;
    if (!live) this.talk(false);
  }

  /** A call ended: nothing stays pressed. */
  rest() {
    const { mute, camera, preview } = this.view;
    this.showMuted(false);
    mute.disabled = true;
    camera.setAttribute("aria-pressed", "false");
    preview.hidden = true;
    preview.srcObject = null;
  }

  async listDevices(list) {
    const { device } = this.view;
    const found = list ?? (await this.call?.devices()) ?? [];
    const options = found
      .filter(({ deviceId }) => deviceId && deviceId !== "default")
      .map(({ deviceId, label }, n) => {
        const option = make("option", "", label || `Microphone ${n + 1}`);
        option.value = deviceId;
        return option;
      });
    device.replaceChildren(make("option", "", "Default microphone"), ...options);
    device.firstChild.value = "";
    const wished = wish("device");
    if (options.some(({ value }) => value === wished)) device.value = wished;
  }

  mute(on) {
    if (!this.call || this.view.mute.disabled) return;
    this.call.mute(on);
    this.showMuted(on);
  }

  showMuted(on) {
    const { mute } = this.view;
    mute.setAttribute("aria-pressed", String(on));
    mute.title = on ? "Unmute the microphone (M)" : "Mute the microphone (M)";
  }

  setMode(mode) {
    this.mode = mode;
    this.talk(false);
    this.view.ptt.hidden = mode !== "push";
    this.call?.setMode(mode);
    document.documentElement.dataset.mode = mode;
    this.on.mode();
  }

  talk(down) {
    if (down === Boolean(this.talking) || (down && !this.canTalk)) return;
    this.talking = down;
    this.view.ptt.setAttribute("aria-pressed", String(down));
    this.call?.talk(down);
  }

  get canTalk() {
    return this.mode === "push" && this.live && !this.view.ptt.disabled;
  }

  interrupt() {
    if (this.live) this.call.send({ t: "interrupt" });
  }

  /** Space talks where it would do nothing else: not in text, not on most other controls. */
  isTalkKey({ key, target }) {
    if (key !== " " || this.mode !== "push") return false;
    if (!(target instanceof Element)) return true;
    if (target === this.view.talk || target === this.view.ptt) return true;
    return target.matches("input[type=radio]:checked") || !target.closest(CONTROLS);
  }

  keyDown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.view["help-box"].open) return;
    if (event.key === "Escape") return this.escape(event);
    if (this.isTalkKey(event) && this.live) {
      event.preventDefault();
      if (!event.repeat) this.talk(true);
      return;
    }
    if (takesKeys(event.target) || event.repeat || !this.view["keys-on"].checked) return;
    const act = {
      m: () => this.mute(!this.call?.muted),
      t: () => this.view.text.focus(),
      d: () => this.on.panel(),
      "?": () => find("help").click(),
    }[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  }

  keyUp(event) {
    if (event.key !== " " || !this.isTalkKey(event) || !(this.live || this.talking)) return;
    event.preventDefault(); // or the round button hangs up
    this.talk(false);
  }

  escape({ target }) {
    const own = target instanceof Element && target.matches("input[type=search], select");
    if (!own && !this.on.sheet()) this.interrupt(); // there it empties the field or folds the list
  }
}
