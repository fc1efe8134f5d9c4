// Files in memory for Go programs in a page, which use them by package os. The functions have the
// names and the arguments of module fs of Node.js, as wasm_exec.js needs them.
"use strict";

/** @typedef {{ ino: number, entries?: Map<string, Item>, data: Uint8Array<ArrayBuffer>, size: number, time: number }} Item */

/**
 * Returns a file system over the directory root.
 * @param {Item} root
 */
function memoryFiles(root) {
  const constants = { O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024, O_DIRECTORY: 65536 };
  /** @type {Map<number, { item: Item, at: number, flags: number }>} */
  const open = new Map();
  let nextFD = 3, nextIno = 1;
  const count = (/** @type {Item} */ item) => {
    nextIno = Math.max(nextIno, item.ino + 1);
    item.entries?.forEach(count);
  };
  count(root);

  const fail = (/** @type {string} */ code) => Object.assign(new Error(code), { code });
  const create = (/** @type {boolean} */ isDir) =>
    /** @type {Item} */ ({ ino: nextIno++, entries: isDir ? new Map() : undefined, data: new Uint8Array(0), size: 0, time: Date.now() });

  // Paths are relative to the root, which is also the working directory.
  const split = (/** @type {string} */ path) => {
    /** @type {string[]} */
    const parts = [];
    for (const part of path.split("/")) {
      if (part === "..") parts.pop();
      else if (part !== "" && part !== ".") parts.push(part);
    }
    return parts;
  };
  const walk = (/** @type {string[]} */ parts) => {
    let item = root;
    for (const part of parts) {
      if (!item.entries) throw fail("ENOTDIR");
      const next = item.entries.get(part);
      if (!next) throw fail("ENOENT");
      item = next;
    }
    return item;
  };
  const find = (/** @type {string} */ path) => walk(split(path));
  const place = (/** @type {string} */ path) => {
    const parts = split(path), name = parts.pop(), entries = walk(parts).entries;
    if (!entries) throw fail("ENOTDIR");
    if (name === undefined) throw fail("EINVAL");
    return { entries, name, item: entries.get(name) };
  };
  const opened = (/** @type {number} */ fd) => {
    const file = open.get(fd);
    if (!file) throw fail("EBADF");
    return file;
  };
  const resize = (/** @type {Item} */ item, /** @type {number} */ size) => {
    if (size > item.data.length) {
      const data = new Uint8Array(Math.max(size, 2 * item.data.length));
      data.set(item.data.subarray(0, item.size));
      item.data = data;
    }
    if (size < item.size) item.data.fill(0, size, item.size);
    item.size = size;
    item.time = Date.now();
  };
  const stat = (/** @type {Item} */ item) => ({
    dev: 1, ino: item.ino, mode: item.entries ? 0o40755 : 0o100644, nlink: 1, uid: 0, gid: 0, rdev: 0, size: item.size, blksize: 4096, blocks: Math.ceil(item.size / 512),
    atimeMs: item.time, mtimeMs: item.time, ctimeMs: item.time, isDirectory: () => item.entries !== undefined,
  });
  const remove = (/** @type {string} */ path, /** @type {boolean} */ isDir) => {
    const { entries, name, item } = place(path);
    if (!item) throw fail("ENOENT");
    if (!isDir && item.entries) throw fail("EISDIR");
    if (isDir && !item.entries) throw fail("ENOTDIR");
    if (item.entries && item.entries.size > 0) throw fail("ENOTEMPTY");
    entries.delete(name);
  };

  /** @type {Record<string, (...args: any[]) => unknown>} */
  const calls = {
    open(path, flags) {
      let item = root;
      if (split(path).length > 0) {
        const at = place(path);
        if (at.item && flags & constants.O_CREAT && flags & constants.O_EXCL) throw fail("EEXIST");
        if (!at.item && !(flags & constants.O_CREAT)) throw fail("ENOENT");
        item = at.item ?? create(false);
        at.entries.set(at.name, item);
      }
      if (flags & constants.O_DIRECTORY && !item.entries) throw fail("ENOTDIR");
      if (item.entries && flags & (constants.O_WRONLY | constants.O_RDWR)) throw fail("EISDIR");
      if (flags & constants.O_TRUNC) resize(item, 0);
      open.set(nextFD, { item, at: 0, flags });
      return nextFD++;
    },
    close(fd) {
      opened(fd);
      open.delete(fd);
    },
    read(fd, buffer, offset, length, position) {
      const file = opened(fd), from = position ?? file.at;
      if (file.item.entries) throw fail("EISDIR");
      const bytes = file.item.data.subarray(Math.min(from, file.item.size), Math.min(from + length, file.item.size));
      buffer.set(bytes, offset);
      if (position === null) file.at += bytes.length;
      return bytes.length;
    },
    write(fd, buffer, offset, length, position) {
      const file = opened(fd), from = position ?? (file.flags & constants.O_APPEND ? file.item.size : file.at);
      resize(file.item, Math.max(file.item.size, from + length));
      file.item.data.set(buffer.subarray(offset, offset + length), from);
      if (position === null) file.at = from + length;
      return length;
    },
    fstat: (fd) => stat(opened(fd).item),
    stat: (path) => stat(find(path)),
    lstat: (path) => stat(find(path)),
    mkdir(path) {
      if (split(path).length === 0) throw fail("EEXIST");
      const { entries, name, item } = place(path);
      if (item) throw fail("EEXIST");
      entries.set(name, create(true));
    },
    readdir(path) {
      const { entries } = find(path);
      if (!entries) throw fail("ENOTDIR");
      return [...entries.keys()];
    },
    rename(from, to) {
      const source = place(from), target = place(to);
      if (!source.item) throw fail("ENOENT");
      if (target.item === source.item) return;
      if (target.item) remove(to, source.item.entries !== undefined);
      source.entries.delete(source.name);
      target.entries.set(target.name, source.item);
    },
    link(from, to) {
      const target = place(to);
      if (target.item) throw fail("EEXIST");
      target.entries.set(target.name, find(from));
    },
    unlink: (path) => remove(path, false),
    rmdir: (path) => remove(path, true),
    ftruncate: (fd, size) => resize(opened(fd).item, size),
    truncate: (path, size) => resize(find(path), size),
    readlink() {
      throw fail("EINVAL");
    },
    symlink() {
      throw fail("EPERM");
    },
    fsync: () => undefined,
    utimes: () => undefined,
    chmod: () => undefined,
    fchmod: () => undefined,
  };
  /** @type {Record<string, unknown>} */
  const fs = { constants };
  for (const [name, call] of Object.entries(calls)) {
    fs[name] = (/** @type {any[]} */ ...args) => {
      const callback = args.pop();
      let result;
      try {
        result = call(...args);
      } catch (e) {
        callback(e);
        return;
      }
      callback(null, result);
    };
  }
  return fs;
}
