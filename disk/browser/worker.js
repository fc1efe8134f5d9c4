// The worker of package browser. It has the numbered files of one directory, and answers one
// message for each call, in order. The files are in the origin-private file system (OPFS). If the
// browser has no OPFS that can be written, the files are in IndexedDB.
const files = new Map(); // The open files, by name. They have the methods of a sync access handle.
let directory;

const calls = {
  // A directory stays where it was created: a later version of the browser may have OPFS. If
  // readOnly is set, another tab may write the directory.
  async begin({ name, readOnly }) {
    const top = await privateFiles();
    let dir = top && await missing(top.getDirectoryHandle(name));
    const database = dir ? undefined : await openDatabase(name, !top && !readOnly);
    if (readOnly && !dir && !database) throw new DOMException(`${name} is missing`, "NotFoundError");
    dir ??= database ?? await top.getDirectoryHandle(name, { create: true });
    if (readOnly) directory = database ? new ReadDatabase(dir) : new ReadPrivate(dir);
    else directory = database ? await Database.begin(dir) : new Private(dir);
    return database ? "IndexedDB" : "OPFS";
  },
  list() { return directory.list(); },
  async open({ name }) { files.set(name, await directory.open(name)); },
  remove({ name }) { return directory.remove(name); },
  async read({ name, at, length }) {
    const data = new Uint8Array(length);
    return data.subarray(0, await files.get(name).read(data, { at }));
  },
  // A missing file is undefined.
  async readFiles({ names }) {
    const all = [];
    for (const name of names) {
      all.push(await missing((async () => {
        const file = await directory.open(name);
        const data = new Uint8Array(await file.getSize());
        return data.subarray(0, await file.read(data, { at: 0 }));
      })()));
    }
    return all;
  },
  async write({ name, at, data }) {
    for (let done = 0; done < data.length; ) {
      const n = await files.get(name).write(data.subarray(done), { at: at + done });
      if (n === 0) throw new DOMException("the browser wrote nothing", "QuotaExceededError");
      done += n;
    }
  },
  size({ name }) { return files.get(name).getSize(); },
  sizes({ names }) {
    // An open file may have bytes that are not flushed, and only its handle knows them.
    const size = async (name) => files.has(name) ? files.get(name).getSize() : directory.size(name);
    return Promise.all(names.map(async (name) => await missing(size(name)) ?? -1));
  },
  flush({ name }) { return files.get(name).flush(); },
  async close({ name }) {
    const file = files.get(name);
    files.delete(name);
    await file.close();
  },
  end() { return directory.end(); },
};

// privateFiles returns the top directory of OPFS. It returns undefined if the browser has no OPFS
// that a worker can write, or refuses it, as in a private window.
async function privateFiles() {
  if (!self.FileSystemFileHandle?.prototype.createSyncAccessHandle) return undefined;
  try {
    return await navigator.storage?.getDirectory?.();
  } catch (e) {
    if (e.name === "SecurityError") return undefined;
    throw e;
  }
}

// missing waits for a promise. It returns undefined if the promise fails with a NotFoundError.
async function missing(promise) {
  try {
    return await promise;
  } catch (e) {
    if (e.name !== "NotFoundError") throw e;
  }
}

// Private is a directory of OPFS.
class Private {
  constructor(dir) { this.dir = dir; }

  async list() {
    const names = [];
    for await (const name of this.dir.keys()) names.push(name);
    return names;
  }

  async open(name) {
    const file = await this.dir.getFileHandle(name, { create: true });
    return file.createSyncAccessHandle();
  }

  async size(name) { return (await (await this.dir.getFileHandle(name)).getFile()).size; }
  remove(name) { return missing(this.dir.removeEntry(name)); }
  end() {}
}

// ReadPrivate is a directory of OPFS that another tab may write.
class ReadPrivate extends Private {
  async open(name) { return new ReadPrivateFile(await this.dir.getFileHandle(name)); }
}

class ReadPrivateFile {
  constructor(handle) { this.handle = handle; }

  async getSize() { return (await this.handle.getFile()).size; }

  async read(data, { at }) {
    let done = 0;
    for (let n = 1; n > 0 && done < data.length; done += n) {
      const part = await this.part(at + done, Math.min(at + data.length, at + done + 4 * BLOCK));
      data.set(part, done);
      n = part.length;
    }
    return done;
  }

  // part returns the bytes from start to end, or to the end of the file. A snapshot of the file
  // cannot be read after the file has changed. Then part reads a new one.
  async part(start, end) {
    for (let tries = 100; ; tries--) {
      try {
        const snapshot = await this.handle.getFile();
        return new Uint8Array(await snapshot.slice(start, end).arrayBuffer());
      } catch (e) {
        if (e.name !== "NotReadableError" || tries === 0) throw e;
      }
    }
  }

  close() {}
}

// openDatabase opens the IndexedDB database of a directory. If create is false and the database
// does not exist, or the browser refuses IndexedDB, openDatabase returns undefined. After any other
// failure the database may exist, so the caller must not use an empty directory instead.
async function openDatabase(name, create) {
  let absent = !self.indexedDB;
  try {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => {
      if (!create) {
        absent = true;
        return request.transaction.abort();
      }
      for (const store of ["owner", "files", "blocks"]) request.result.createObjectStore(store);
    };
    return await result(request);
  } catch (e) {
    const refused = ["SecurityError", "InvalidStateError"].includes(e.name);
    if (!create && (absent || refused)) return undefined;
    if (!create || e.name === "QuotaExceededError") throw e;
    throw new DOMException(`it has no private files, and IndexedDB fails: ${e.message}`, "NotSupportedError");
  }
}

// result waits for a request of IndexedDB.
function result(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// complete waits until the changes of a transaction are stored.
function complete(tx) {
  return new Promise((resolve, reject) => {
    tx.oncomplete = resolve;
    tx.onabort = () => reject(tx.error ?? new DOMException("another tab writes the files", "LostError"));
  });
}

const BLOCK = 64 << 10; // In bytes.

// Database is a directory in a database of IndexedDB. The store "files" has the length of each
// file, and the store "blocks" its bytes, by name and number. A block that is missing or too short
// ends with zeros.
//
// What is written is in memory until a flush, a close or the end. So a crash of the tab loses it.
class Database {
  static async begin(database) {
    const d = new Database();
    d.database = database;
    d.owner = crypto.getRandomValues(new Uint32Array(4)).join();
    d.files = new Map();
    // From now on, no other tab can write: see change.
    const tx = database.transaction(["owner", "files"], "readwrite"), begun = complete(tx);
    tx.objectStore("owner").put(d.owner, "owner");
    const stored = tx.objectStore("files");
    const [names, lengths] = await Promise.all([result(stored.getAllKeys()), result(stored.getAll()), begun]);
    names.forEach((name, i) => d.files.set(name, new DatabaseFile(d, name, lengths[i])));
    return d;
  }

  // change calls f with the stores, and waits until its changes are stored. It stores nothing if
  // another tab has become the owner by taking the lock by force.
  async change(durability, f) {
    const tx = this.database.transaction(["owner", "files", "blocks"], "readwrite", { durability });
    const stored = complete(tx);
    const owner = tx.objectStore("owner").get("owner");
    owner.onsuccess = () => { if (owner.result !== this.owner) tx.abort(); };
    try {
      f(tx.objectStore("files"), tx.objectStore("blocks"));
    } catch (e) {
      tx.abort();
      await stored.catch(() => {});
      throw e;
    }
    return stored;
  }

  list() { return [...this.files.keys()]; }
  async size(name) { return this.files.get(name)?.length ?? -1; }

  open(name) {
    if (!this.files.has(name)) this.files.set(name, new DatabaseFile(this, name, 0));
    return this.files.get(name);
  }

  async remove(name) {
    await this.change("relaxed", (files, blocks) => {
      files.delete(name);
      blocks.delete(IDBKeyRange.bound([name, 0], [name, Infinity]));
    });
    this.files.delete(name);
  }

  async end() {
    let failure;
    for (const file of this.files.values()) await file.close().catch((e) => { failure ??= e; });
    this.database.close();
    if (failure) throw failure;
  }
}

// DatabaseFile is a file of a Database. It has the methods of a sync access handle, but they return
// promises. The calls of a worker run one after another.
class DatabaseFile {
  blocks = new Map(); // The blocks that were written since the file was opened.
  changed = new Set(); // The numbers of the blocks that are not stored.

  constructor(directory, name, length) {
    Object.assign(this, { directory, name, length });
  }

  getSize() { return this.length; }

  // load returns the stored blocks from first to last, by number.
  async load(first, last, tx = this.directory.database.transaction("blocks")) {
    const range = IDBKeyRange.bound([this.name, first], [this.name, last]);
    const blocks = tx.objectStore("blocks");
    const [keys, values] = await Promise.all([result(blocks.getAllKeys(range)), result(blocks.getAll(range))]);
    return new Map(keys.map(([, i], at) => [i, values[at]]));
  }

  async read(data, { at, tx }) {
    const end = Math.min(at + data.length, this.length);
    if (end <= at) return 0;
    const first = Math.floor(at / BLOCK), last = Math.floor((end - 1) / BLOCK);
    let stored; // Loaded when a block is not in memory.
    for (let i = first; i <= last; i++) {
      const block = this.blocks.get(i) ?? (stored ??= await this.load(i, last, tx)).get(i);
      const from = Math.max(at, i * BLOCK), to = Math.min(end, (i + 1) * BLOCK);
      if (block) data.set(block.subarray(from - i * BLOCK, to - i * BLOCK), from - at);
    }
    return end - at;
  }

  async write(data, { at }) {
    const end = at + data.length;
    const first = Math.floor(at / BLOCK), last = Math.floor((end - 1) / BLOCK);
    for (let i = first; i <= last; i++) {
      const from = Math.max(at, i * BLOCK), to = Math.min(end, (i + 1) * BLOCK);
      if (!this.blocks.has(i)) {
        const block = new Uint8Array(BLOCK);
        if (to - from < BLOCK) block.set((await this.load(i, i)).get(i) ?? []);
        this.blocks.set(i, block);
      }
      this.blocks.get(i).set(data.subarray(from - at, to - at), from - i * BLOCK);
      this.changed.add(i);
      this.length = Math.max(this.length, to);
    }
    return data.length;
  }

  flush() { return this.store("strict"); }

  // If close fails, the blocks stay in memory for the next open file or the end.
  async close() {
    if (this.changed.size > 0) await this.store("relaxed");
    this.blocks.clear();
  }

  async store(durability) {
    await this.directory.change(durability, (files, blocks) => {
      for (const i of this.changed) {
        blocks.put(this.blocks.get(i).slice(0, this.length - i * BLOCK), [this.name, i]);
      }
      files.put(this.length, this.name);
    });
    this.changed.clear();
  }
}

// ReadDatabase is a directory in a database that another tab may write. It has what is stored.
class ReadDatabase {
  constructor(database) { this.database = database; }

  list() { return result(this.database.transaction("files").objectStore("files").getAllKeys()); }

  size(name) { return new ReadDatabaseFile(this, name).getSize(); }

  async open(name) {
    await this.size(name); // The file must exist.
    return new ReadDatabaseFile(this, name);
  }

  end() { this.database.close(); }
}

class ReadDatabaseFile {
  constructor(directory, name) { Object.assign(this, { directory, name }); }

  async getSize(tx = this.directory.database.transaction("files")) {
    const length = await result(tx.objectStore("files").get(this.name));
    if (length === undefined) throw new DOMException(`${this.name} is missing`, "NotFoundError");
    return length;
  }

  // One transaction reads the length and the bytes.
  async read(data, { at }) {
    const tx = this.directory.database.transaction(["files", "blocks"]);
    const file = new DatabaseFile(this.directory, this.name, await this.getSize(tx));
    return file.read(data, { at, tx });
  }

  close() {}
}

async function answer({ id, call, ...args }) {
  try {
    const value = await calls[call](args);
    postMessage({ id, value }, value instanceof Uint8Array ? [value.buffer] : []);
  } catch (e) {
    postMessage({ id, error: e.name, text: e.message });
  }
}

let last = Promise.resolve(); // Ends with the last call.
onmessage = ({ data }) => { last = last.then(() => answer(data)); };
