// The worker of package browser. It has the files of one directory of the origin-private file
// system, and answers one message for each call.
const files = new Map(); // The open files, by name.
let dir;

const calls = {
  async begin({ name }) {
    let top = await navigator.storage.getDirectory();
    dir = await top.getDirectoryHandle(name, { create: true });
  },
  async list() {
    const names = [];
    for await (const name of dir.keys()) names.push(name);
    return names;
  },
  async open({ name }) {
    const file = await dir.getFileHandle(name, { create: true });
    files.set(name, await file.createSyncAccessHandle());
  },
  async remove({ name }) {
    try {
      await dir.removeEntry(name);
    } catch (e) {
      if (e.name !== "NotFoundError") throw e;
    }
  },
  read({ name, at, length }) {
    const data = new Uint8Array(length);
    return data.subarray(0, files.get(name).read(data, { at }));
  },
  write({ name, at, data }) {
    for (let done = 0; done < data.length; ) {
      const n = files.get(name).write(data.subarray(done), { at: at + done });
      if (n === 0) throw new DOMException("the browser wrote nothing", "QuotaExceededError");
      done += n;
    }
  },
  size({ name }) { return files.get(name).getSize(); },
  flush({ name }) { return files.get(name).flush(); },
  close({ name }) {
    files.get(name).close();
    files.delete(name);
  },
};

onmessage = async ({ data: { id, call, ...args } }) => {
  try {
    const value = await calls[call](args);
    postMessage({ id, value }, value instanceof Uint8Array ? [value.buffer] : []);
  } catch (e) {
    postMessage({ id, error: e.name, text: e.message });
  }
};
