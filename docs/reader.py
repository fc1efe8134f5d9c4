#!/usr/bin/env python3
"""Reads a store or a save of Stet, written from FORMAT.md alone and in its order.

    reader.py PATH...      a line of JSON for each: the newest state, every row, and what is damaged

It needs Python 3.8 and nothing else, but for saves that are compressed: those need Python 3.14, or
the module zstandard. It reads files whole and is not fast: it is there to be read, and to find out,
in the tests, whether FORMAT.md says all that one must know.
"""
import base64, json, math, os, re, struct, sys


class Damage(Exception):
    """Bytes that are not what was written, or that this program is too old for."""


def need(ok, what):
    if not ok:
        raise Damage(what)


# ---- Checksums

def crc_table():
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ 0x82F63B78 * (n & 1)
        yield n


CRC = list(crc_table())


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for b in data:
        crc = CRC[(crc ^ b) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def fnv1a(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = (h ^ b) * 0x100000001B3 & M
    return h


M = 2**64 - 1
SECRET = bytes.fromhex(  # XXH3's own, for seed 0.
    'b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221'
    'b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8'
    'a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb'
    '170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e')
P32 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def u32(b, at=0): return int.from_bytes(b[at:at + 4], 'little')
def u64(b, at=0): return int.from_bytes(b[at:at + 8], 'little')
def secret(at): return u64(SECRET, at)
def swap(x): return int.from_bytes(x.to_bytes(8, 'little'), 'big')
def fold(x, y): return x * y & M ^ x * y >> 64
def rotate(x, n): return (x << n | x >> 64 - n) & M


def mixed(h, right1, times1, right2=32, times2=1, right3=0):
    h = (h ^ h >> right1) * times1 & M
    h = (h ^ h >> right2) * times2 & M
    return h ^ h >> right3 if right3 else h


def avalanche(h): return mixed(h, 37, 0x165667919E3779F9)
def avalanche64(h): return mixed(h, 33, P64[1], 29, P64[2], 32)


def xxh3(b):
    n = len(b)
    if n > 240:
        return long_xxh3(b)
    mix = lambda at, s: fold(u64(b, at) ^ secret(s), u64(b, at + 8) ^ secret(s + 8))
    if n > 128:
        h = avalanche(n * P64[0] + sum(mix(16 * i, 16 * i) for i in range(8)) & M)
        return avalanche(h + sum(mix(16 * i, 16 * i - 125) for i in range(8, n // 16)) + mix(n - 16, 119) & M)
    if n > 16:
        pairs = (n - 1) // 32 + 1
        return avalanche(n * P64[0] + sum(mix(16 * i, 32 * i) + mix(n - 16 - 16 * i, 32 * i + 16) for i in range(pairs)) & M)
    if n > 8:
        low, high = u64(b) ^ secret(24) ^ secret(32), u64(b, n - 8) ^ secret(40) ^ secret(48)
        return avalanche(n + swap(low) + high + fold(low, high) & M)
    if n > 3:
        h = (u32(b, n - 4) + (u32(b) << 32)) ^ secret(8) ^ secret(16)
        h = (h ^ rotate(h, 49) ^ rotate(h, 24)) * 0x9FB21C651E98DF25 & M
        h = (h ^ (h >> 35) + n) * 0x9FB21C651E98DF25 & M
        return h ^ h >> 28
    if n > 0:
        return avalanche64((b[0] << 16 | b[n >> 1] << 24 | b[-1] | n << 8) ^ u32(SECRET) ^ u32(SECRET, 4))
    return avalanche64(secret(56) ^ secret(64))


def long_xxh3(b):
    acc = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]]
    keys = [struct.unpack_from('<8Q', SECRET, 8 * i) for i in range(16)]

    def stripe(at, keys):
        for i, (x, key) in enumerate(zip(struct.unpack_from('<8Q', b, at), keys)):
            acc[i ^ 1] += x
            acc[i] = acc[i] + ((x ^ key) & 0xFFFFFFFF) * ((x ^ key) >> 32)

    stripes = (len(b) - 1) // 64
    for i in range(stripes):
        stripe(64 * i, keys[i % 16])
        if i % 16 == 15:
            for j in range(8):
                x = acc[j] & M
                acc[j] = (x ^ x >> 47 ^ secret(128 + 8 * j)) * P32[0] & M
    stripe(len(b) - 64, struct.unpack_from('<8Q', SECRET, 121))
    pairs = sum(fold(acc[i] & M ^ secret(11 + 8 * i), acc[i + 1] & M ^ secret(19 + 8 * i)) for i in range(0, 8, 2))
    return avalanche(len(b) * P64[0] + pairs & M)


# ---- msgpack, varints, entities

def unpack(b, at=0):
    """The value that begins at b[at], and where it ends. A map is a list of pairs."""
    need(at < len(b), 'value cut short')
    c, at = b[at], at + 1
    big = lambda n, signed=False: int.from_bytes(cut(b, at, n), 'big', signed=signed)
    size = lambda first: 1 << c - first
    if c < 0x80: return c, at
    if c < 0x90: return sequence(b, at, c & 15, True)
    if c < 0xA0: return sequence(b, at, c & 15)
    if c < 0xC0: return text(b, at, c & 31)
    if c in (0xC0, 0xC2, 0xC3): return {0xC0: None, 0xC2: False, 0xC3: True}[c], at
    if c in (0xC4, 0xC5, 0xC6):
        end = at + size(0xC4)
        n = big(size(0xC4))
        return cut(b, end, n), end + n
    if c == 0xCA: return struct.unpack('>f', cut(b, at, 4))[0], at + 4
    if c == 0xCB: return struct.unpack('>d', cut(b, at, 8))[0], at + 8
    if 0xCC <= c <= 0xCF: return big(size(0xCC)), at + size(0xCC)
    if 0xD0 <= c <= 0xD3: return big(size(0xD0), True), at + size(0xD0)
    if 0xD9 <= c <= 0xDB: return text(b, at + size(0xD9), big(size(0xD9)))
    if c in (0xDC, 0xDD): return sequence(b, at + 2 * size(0xDC), big(2 * size(0xDC)))
    if c in (0xDE, 0xDF): return sequence(b, at + 2 * size(0xDE), big(2 * size(0xDE)), True)
    need(c >= 0xE0, f'code {c:#x}')
    return c - 256, at


def cut(b, at, n):
    need(at + n <= len(b), 'value cut short')
    return bytes(b[at:at + n])


def text(b, at, n): return cut(b, at, n).decode('utf-8', 'surrogateescape'), at + n


def sequence(b, at, n, is_map=False):
    need(n <= len(b) - at, 'value cut short')
    items = []
    for _ in range(n):
        item, at = unpack(b, at)
        if is_map:
            value, at = unpack(b, at)
            item = item, value
        items.append(item)
    return items, at


def whole(b):
    value, end = unpack(b)
    need(end == len(b), 'bytes left over')
    return value


def varints(b):
    value = shift = 0
    for c in b:
        value |= (c & 127) << shift
        shift += 7
        if c < 128:
            yield value
            value = shift = 0


def zigzag(n): return n >> 1 ^ -(n & 1)


VACANT = M  # The entity of a gap.


def entities(b): return list(struct.unpack(f'<{len(b) // 8}Q', b))
def index(entity): return entity & 0xFFFFFFFF


# ---- Layouts

BOOL, COMPLEX64, COMPLEX128, ENTITY, STRING, BYTES, STRUCT, ARRAY, SLICE, MAP, POINTER = 1, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21
SCALARS = dict(zip(range(1, 15), '? b h i q B H I Q f d 2f 2d Q'.split()))


def fields(t): return list(zip(t[2::2], t[3::2]))


def width(t):
    """The bytes of a packed row; None: rows are msgpack."""
    if t[0] == STRUCT:
        widths = [width(field) for _, field in fields(t)]
        return None if None in widths else sum(widths)
    if t[0] == ARRAY:
        return None if width(t[2]) is None else width(t[2]) * t[3]
    return struct.calcsize('<' + SCALARS[t[0]]) if t[0] in SCALARS else None


def unpacked(t, b, at=0):
    """The packed value at b[at] in the form that msgpack has, and where it ends."""
    if t[0] == STRUCT:
        values = []
        for name, field in fields(t):
            value, at = unpacked(field, b, at)
            values.append((name, value))
        return values, at
    if t[0] == ARRAY:
        values = []
        for _ in range(t[3]):
            value, at = unpacked(t[2], b, at)
            values.append(value)
        return values, at
    values = struct.unpack_from('<' + SCALARS[t[0]], b, at)
    return list(values) if t[0] in (COMPLEX64, COMPLEX128) else values[0], at + width(t)


def zero(t):
    """The row of the zero value."""
    return zero_value(t) if width(t) is None else bytes(width(t))


def zero_value(t):
    """The msgpack of the zero value."""
    if t[0] == STRUCT:
        return head(0x80, len(fields(t))) + b''.join(head(0xA0, len(name.encode())) + name.encode() + zero_value(field) for name, field in fields(t))
    if t[0] == ARRAY:
        return head(0x90, t[3]) + zero_value(t[2]) * t[3]
    return ZEROS.get(t[0], b'\0')


def head(code, n):
    """What a map, an array or a string of length n begins with."""
    if n < (32 if code == 0xA0 else 16):
        return bytes([code | n])
    if code == 0xA0 and n < 256:
        return bytes([0xD9, n])
    code = {0x80: 0xDE, 0x90: 0xDC, 0xA0: 0xDA}[code]
    return bytes([code]) + n.to_bytes(2, 'big') if n < 65536 else bytes([code + 1]) + n.to_bytes(4, 'big')


ZEROS = {BOOL: b'\xC2', 10: b'\xCA' + bytes(4), 11: b'\xCB' + bytes(8), COMPLEX64: b'\x92' + 2 * (b'\xCA' + bytes(4)),
         COMPLEX128: b'\x92' + 2 * (b'\xCB' + bytes(8)), STRING: b'\xA0', BYTES: b'\xC0', SLICE: b'\xC0', MAP: b'\xC0', POINTER: b'\xC0'}


def rows_of(t, b, n):
    """Cuts n rows off b, which they must fill."""
    size, at, rows = width(t), 0, []
    for _ in range(n):
        end = unpack(b, at)[1] if size is None else at + size
        rows.append(cut(b, at, end - at))
        at = end
    need(at == len(b), 'bytes behind the last row')
    return rows


def shown(t, v):
    """A value of type t as JSON can say it."""
    if v is None: return None
    if t[0] == ENTITY: return f'{index(v)}v{v >> 32}'
    if t[0] in (10, 11): return number(v, t[0] == 10)
    if t[0] in (COMPLEX64, COMPLEX128): return [number(x, t[0] == COMPLEX64) for x in v]
    if t[0] == STRING: return v.encode('utf-8', 'surrogateescape').decode('utf-8', 'replace')
    if t[0] == BYTES: return base64.b64encode(v).decode()
    if t[0] == STRUCT: return {name: shown(field, x) for (name, field), (_, x) in zip(fields(t), v)}
    if t[0] in (ARRAY, SLICE): return [shown(t[2], x) for x in v]
    if t[0] == POINTER: return shown(t[2], v[0])
    if t[0] == MAP:
        entries = [(shown(t[3], key), shown(t[2], x)) for key, x in v]
        simple = t[3][0] <= STRING and t[3][0] not in (COMPLEX64, COMPLEX128)
        return {k if isinstance(k, str) else json.dumps(k): x for k, x in entries} if simple else [list(e) for e in entries]
    return v


def number(x, single):
    """A float by its shortest digits; JSON has none for NaN and infinities."""
    if math.isnan(x): return 'NaN'
    if math.isinf(x): return '+Inf' if x > 0 else '-Inf'
    digits = (float(f'{x:.{n}g}') for n in range(6, 10)) if single else ()
    return next((d for d in digits if abs(d) < 3.4028235e38 and struct.pack('<f', d) == struct.pack('<f', x)), x)


# ---- Schemas and states

class Component:
    def __init__(self, entry):
        self.name, described, self.resource, self.rewinds = entry[:4]
        self.indexed, default = entry[4:6] if len(entry) > 4 else (False, b'')
        self.version = entry[6] if len(entry) > 6 else 0
        self.layout = whole(described)
        self.gap = (default or zero(self.layout)) if self.indexed else b''
        self.entities, self.rows = [], []

    def meaning(self):
        """What two entries must agree in to be of one component."""
        def unnamed(t): return [t[0]] + [unnamed(x) if isinstance(x, list) else x for x in t[2:]]
        return self.name, self.version, self.resource, self.rewinds, self.indexed, self.gap, unnamed(self.layout)

    def apply(self, before, after, entity_ranges, entity_bytes, value_ranges, value_bytes, edit_ranges=b'', edit_bytes=b''):
        need(not self.rewinds or before == len(self.rows) or self.resource and not self.rows, f'{self.name} has {len(self.rows)} rows, not {before}')
        self.rows = resized(self.rows, after, b'')
        self.entities = [] if self.resource else resized(self.entities, after, 0)
        put(self.entities, entity_ranges, entities(entity_bytes))
        put(self.rows, value_ranges, rows_of(self.layout, value_bytes, sum(n for _, n in ranges(value_ranges))))
        edits = Varints(edit_bytes)
        for first, n in ranges(edit_ranges):
            need(first + n <= min(before, after), f'edits of rows of {self.name} that were not there')
            for row in range(first, first + n):
                self.rows[row], = rows_of(self.layout, edited(self.rows[row], edits), 1)
        need(not edits.left(), 'edits and their ranges differ in length')

    def drop(self, alive):
        """Removes the rows of entities that are not alive, as a world does that is put back."""
        kept = [(e, row) if e in alive else (VACANT, self.gap) for e, row in zip(self.entities, self.rows) if self.indexed or e in alive]
        self.entities, self.rows = [e for e, _ in kept], [row for _, row in kept]


def components(schema):
    form, entries = whole(schema)
    need(form in (1, 2, 3), f'schema of format {form}, written by a newer program')
    return [Component(entry) for entry in entries]


def continues(a, b):
    """Whether one of two lists of components has only been added to."""
    return all(x.meaning() == y.meaning() for x, y in zip(a, b))


def resized(rows, n, new): return rows[:n] + [new] * (n - len(rows))


def ranges(b):
    row, numbers = 0, varints(b)
    for skip in numbers:
        n = next(numbers)
        yield row + skip, n
        row += skip + n


def edited(row, edits):
    """A row, changed by the next edits."""
    parts, at = [], 0
    for i in range(edits.next()):
        skipped, removed, given = edits.next(), edits.next(), edits.next()
        given, kept, at = edits.bytes(given), row[at:at + skipped], at + skipped + removed
        need(len(kept) == skipped and at <= len(row) and (i == 0 or skipped >= 8), 'edits that do not fit the row')
        was = row[at - removed:at]
        need(was[:1] != given[:1] and was[-1:] != given[-1:], 'an edit that begins or ends with what was there')
        parts += [kept, given]
    return b''.join(parts) + row[at:]


def put(rows, where, values):
    """Overwrites the rows of some ranges."""
    values = iter(values)
    for first, n in ranges(where):
        need(first + n <= len(rows), 'a range past the last row')
        for row in range(first, first + n):
            rows[row] = next(values)
    need(next(values, None) is None, 'ranges and rows differ in length')


class State:
    """A world at the end of a tick."""

    def adopt(self, schema):
        known = components(schema)
        need(continues(self.components, known), 'the schema is another')
        self.components += known[len(self.components):]

    def apply(self, payload, identity):
        form, parent, tick, _, registry, storages, _ = whole(payload)
        need(form in (1, 2, 3), f'tick of format {form}, written by a newer program')
        need(parent == self.identity, f'tick {tick} continues the state {parent}, not {self.identity}')
        if registry is not None:
            self.alive, self.free, total, where, values = registry
            self.registry = resized(self.registry, total, 0)
            put(self.registry, where, entities(values))
        for number, *change in storages:
            self.components[number].apply(*change)
        self.tick, self.identity = tick, identity

    def digest(self):
        le = lambda *numbers: struct.pack(f'<{len(numbers)}Q', *numbers)

        def summed(entities, rows):
            n, sums = max(len(entities), len(rows)), []
            for at in range(0, n, 4096):
                page = entities[at:at + 4096]
                sums.append(xxh3(le(*page) + b''.join(rows[at:at + 4096])))
            return xxh3(le(n, *sums))

        world = le(self.tick, xxh3(le(summed(self.registry, []), self.alive, self.free)))
        by_name = sorted((c.name.encode('utf-8', 'surrogateescape'), c) for c in self.components if c.rewinds and c.rows)
        return xxh3(world + b''.join(le(len(name)) + name + le(summed(c.entities, c.rows)) for name, c in by_name))

    def settle(self):
        """Makes of the state behind the last tick the one that a program gets."""
        alive = set(self.registry[:self.alive])
        for c in self.components:
            if not c.rewinds and not c.resource:
                c.drop(alive)


# ---- Journal

HEADER = struct.Struct('<8sII16s8Q2I2Q2I')
RECORD = struct.Struct('<2I3Q4I')
PART, MORE, SEAL, MARK, PREAMBLE = (1 << bit for bit in range(27, 32))


class Segment:
    def __init__(self, path, name, problems):
        self.name, self.data, self.problems = name, read(path), problems
        copies = [self.header(at) for at in (0, 128)]
        good = [c for c in copies if isinstance(c, tuple)]
        need(good, f'{name} at offset 0: {copies[0]}')
        for at, copy in zip((0, 128), copies):
            if copy != good[0]:
                self.bad(at, 'a copy of the segment header differs or is damaged')
        (_, _, _, self.world, self.epoch, self.number, self.first, self.start, self.previous, self.previous_end,
         epoch, seq, crc, _, self.salt, self.head, _, _) = good[0]
        self.version = good[0][1]
        self.before = [epoch, seq, crc]
        need(name == f'{self.number:08}.seg', f'{name} says that it is segment {self.number}')

    def bad(self, at, what): self.problems.append(f'journal/{self.name} at offset {at}: {what}')

    def header(self, at):
        b = self.data[at:at + 128]
        if len(b) < 128 or crc32c(b[8:124]) != u32(b, 124):
            return 'no good segment header'
        h = HEADER.unpack(b)
        if h[0] != b'STETJRNL':
            return 'the magic is damaged'
        return h if h[1] in (1, 2) and h[2] == 0 else 'written by a newer program'

    def record(self, at):
        """The header at an offset if its CRC holds: seq, parent, tick, synced, flags, length, crc."""
        b = self.data[at:at + 48]
        if len(b) == 48 and b[:4] == b'\xA5\xE7\xD2\xC3':
            if crc32c(struct.pack('<2Q', self.salt, at) + b[8:]) == u32(b, 4):
                return RECORD.unpack(b)[2:]

    def scan(self, limit):
        """Sorts the bytes into records that hold, and ranges that do not: (from, to, why, record)."""
        self.found, self.faults, self.watermark = [], [], self.start
        at, due, certain, part = 256, self.first, True, None

        def fault(start, end, why, record=None):
            nonlocal certain
            self.faults.append((start, end, why, record))
            certain = certain and record is not None

        while at < limit:
            h = self.record(at) if at + 48 <= limit else None
            if part and not (h and h[4] & PART):
                fault(part[0], at, 'the last parts of a payload are missing')
                part = None
            if h is None:
                end = next((x for x in range(at + 8, limit, 8) if self.record(x)), limit)
                fault(at, end, 'no record begins here')
                at = end
                continue
            seq, parent, _, synced, flags, size, crc = h
            self.watermark = max(self.watermark, synced)
            kind, end = flags & (SEAL | MARK | PREAMBLE), min(at + 48 + (size + 7) // 8 * 8, limit)
            content, why = self.data[at + 48:min(at + 48 + size, limit)], ''
            if flags & 0x07FF0000 or kind & kind - 1 or kind and flags & (PART | MORE) or synced > at or not kind and parent >= seq:
                why = 'an impossible record'
            elif flags & PART and not (part and part[2] == (seq, parent, flags & 0xFFFF)):
                why = 'a part without those before it'
            elif not kind and not flags & PART and (seq < due or seq > due and certain):
                why = f'record {seq} where {due} is due'
            elif kind != SEAL and (len(content) < size or crc32c(content, part[3] if flags & PART else 0) != crc) or kind == SEAL and crc != 0x5EA15EA1:
                why = 'the payload is damaged'
            if why:
                fault(at, end, why)
            else:
                start, payload = (part[0], part[1] + content) if flags & PART else (at, content)
                part = (start, payload, (seq, parent, flags & 0xFFFF), crc) if flags & MORE else None
                if not part:
                    self.found.append((kind, start, end, h, payload))
                    if not kind:
                        due, certain = seq + 1, True
                if any(self.data[at + 48 + size:end]) or end < at + 48 + (size + 7) // 8 * 8:
                    fault(at + 48 + size, end, 'the padding is not zero', start)
            at = end
        if part:
            fault(part[0], limit, 'the last parts of a payload are missing')

    def judge_inner(self, end):
        """Judges a segment that was durable up to end when the next one was begun."""
        self.scan(min(end, len(self.data)))
        self.report(end)
        seals = [h for kind, _, _, h, _ in self.found if kind == SEAL]
        if len(self.data) > end and any(h[2] == end for h in seals):
            self.bad(end, 'bytes behind the clean end')
        return end

    def judge_last(self, complete):
        """Judges the newest segment, complete up to there by the ledger, and returns where it ends and whether it was closed."""
        self.scan(len(self.data))
        durable, ended, torn = max(self.watermark, complete), 0, None
        seals = [(start, h) for kind, start, _, h, _ in self.found if kind == SEAL]
        if seals:
            at, h = seals[0]
            second = self.data[at + 48:]
            if len(seals) == 1 and h[2] == at + 96 and durable <= at + 48 and self.unfinished(h, at + 48, second):
                durable, torn = max(durable, at + 48), at + 48
            else:
                durable = ended = max(durable, h[2])
        self.report(durable)
        if torn is None and not ended:
            reaching = ((record if record is not None and start >= durable else max(start, durable))
                        for start, end, _, record in self.faults if end > durable)
            torn = next(reaching, None)
        if ended and len(self.data) > ended:
            self.bad(ended, 'bytes behind the clean end')
        return torn or ended or len(self.data), bool(ended) and len(seals) == 2 and len(self.data) == ended

    def unfinished(self, seal, at, there):
        """Whether the bytes at an offset are what a crash can make of a second seal."""
        body = struct.pack('<3Q4I', *seal)
        want = b'\xA5\xE7\xD2\xC3' + struct.pack('<I', crc32c(struct.pack('<2Q', self.salt, at) + body)) + body
        same = len(os.path.commonprefix([want, there]))
        return same < 48 and len(there) <= 48 and not any(there[same:])

    def report(self, durable):
        for start, _, why, _ in self.faults:
            if start < durable:
                self.bad(start, why)
        if len(self.data) < durable:
            self.bad(len(self.data), f'cut short, {durable} bytes were durable')


class Ledger:
    """Which segments there are, what is in those that have ended, and the note of the store."""

    def __init__(self, path, name, problems):
        self.name, self.data, self.problems = name, read(path), problems
        b = self.data[:64]
        need(len(b) == 64 and crc32c(b[8:60]) == u32(b, 60) and b[:8] == b'STETLEDG', f'{name} at offset 0: no good header of a ledger')
        need(u32(b, 8) == 2, f'{name}: written by a newer program')
        self.world, (number, self.salt) = b[16:32], struct.unpack_from('<2Q', b, 32)
        need(name == f'{number:08}.ledger', f'{name} says that it is ledger {number}')
        self.segments, self.summaries, self.kept, self.note, self.torn, self.closed = {}, {}, 0, b'', None, (0, 0)
        at = 64
        while at < len(self.data):
            end = self.entry(at)
            if end is None:
                end = next((x for x in range(at + 8, len(self.data), 8) if self.entry(x)), len(self.data))
                if end == len(self.data):
                    self.torn = at
                else:
                    self.bad(at, 'a damaged entry')
            else:
                self.take(u32(self.data, at + 4), self.data[at + 16:at + 16 + struct.unpack_from('<Q', self.data, at + 8)[0]])
            at = end

    def bad(self, at, what): self.problems.append(f'journal/{self.name} at offset {at}: {what}')

    def entry(self, at):
        """Where the entry at an offset ends, or None if none that holds begins there."""
        if at + 16 > len(self.data):
            return None
        end = at + 16 + struct.unpack_from('<Q', self.data, at + 8)[0]
        padded = (end + 7) // 8 * 8
        if padded <= len(self.data) and not any(self.data[end:padded]):
            if crc32c(struct.pack('<2Q', self.salt, at) + self.data[at + 4:end]) == u32(self.data, at):
                return padded

    def take(self, kind, content):
        numbers = Varints(content)
        if kind == 1:
            while numbers.left():
                required, name = numbers.next(), numbers.bytes(numbers.next())
                need(not required, f'{self.name}: the journal needs the feature {name}')
        elif kind == 2:
            number, *listed = (numbers.next() for _ in range(4))
            self.segments[number] = tuple(listed)
            ended = numbers.next()
            if ended:
                self.summaries[ended] = numbers.left()
        elif kind == 3:
            self.kept = numbers.next()
        elif kind == 4:
            self.note = content
        elif kind == 5:
            self.closed = numbers.next(), numbers.next()

    def summary(self, number, first):
        """What is in a segment: its end, whether it is sealed, the last seq, the head, and the offset and checksum of its preambles, and of its records by seq."""
        numbers = Varints(self.summaries[number])
        end, sealed, last, head, preambles, records = (numbers.next() for _ in range(6))
        at, described, found, due, tick = 0, [], {}, first, 0
        for _ in range(preambles):
            at += 8 * numbers.next()
            _, _ = numbers.next(), numbers.next()
            described.append((at, u32(numbers.bytes(4), 0)))
        at = 0
        for _ in range(records):
            at += 8 * numbers.next()
            seq = due + numbers.next()
            parent, tick = seq - numbers.next(), tick + zigzag(numbers.next())
            _, length = numbers.next(), numbers.next()
            found[seq] = at, parent, tick, u32(numbers.bytes(4), 0)
            at, due = at + 48 + (length + 7) // 8 * 8, seq + 1
        return end, sealed, last, head, described, found

    def check(self, segments, clean):
        """Compares the segments, by number, with the ledger."""
        for number, listed in self.segments.items():
            s = segments.get(number)
            if s is None and number >= self.kept and number not in segments:
                self.problems.append(f'journal/{number:08}.seg at offset 0: missing, the ledger lists it')
            elif s and (s.epoch, s.first, s.salt) != listed:
                s.bad(0, 'another segment than the ledger lists')
        newest = max(self.segments, default=0)
        for number, s in segments.items():
            if s and number > newest and len(s.data) > s.start:
                self.bad(self.torn or len(self.data), f'it ends before it lists {s.name}')
            if s and number in self.summaries:
                said = self.summary(number, s.first)
                there = [(at, h[6]) for kind, at, _, h, _ in s.found if kind == PREAMBLE and at < said[0]], \
                        {h[0]: (at, h[1], h[2], h[6]) for kind, at, _, h, _ in s.found if kind == 0 and at < said[0]}
                if said[4:] != there:
                    self.bad(0, f'its summary of {s.name} is not what is there')
        if clean and (self.torn or self.closed[0] != max(segments)):
            self.bad(self.torn or len(self.data), 'it ends before it says that the journal was closed')

    def promised(self):
        """The snapshots that there should be: the checksums of their block tables, by number."""
        numbers, promised = Varints(self.note[1:]), {}
        while self.note[:1] == b'\x01' and numbers.left():
            number = numbers.next()
            promised[number] = u32(numbers.bytes(4), 0)
        return promised


class Varints:
    """Reads varints and bytes one after the other."""

    def __init__(self, data): self.data, self.at = data, 0

    def left(self): return self.data[self.at:]

    def bytes(self, n):
        need(self.at + n <= len(self.data), 'bytes that end too early')
        self.at += n
        return self.data[self.at - n:self.at]

    def next(self):
        n = shift = 0
        while True:
            b = self.bytes(1)[0]
            n, shift = n | (b & 127) << shift, shift + 7
            if b < 128:
                return n


class Journal:
    def __init__(self, directory, problems):
        self.records, self.head, self.clean, self.before = {}, 0, False, [0, 0, 0]  # Records: seq → parent, identity, payload, schema.
        names = sorted((n for n in os.listdir(directory) if re.fullmatch(r'\d{8,}\.seg', n)), key=lambda n: int(n[:-4]))
        segments = []
        for name in names:
            try:
                segments.append(Segment(os.path.join(directory, name), name, problems))
            except Damage as damage:
                problems.append(f'journal/{damage}')
                segments.append(None)
        self.ledger = self.read_ledger(directory, segments, problems)
        for i, s in enumerate(segments):
            if s is None:
                self.clean = False
                continue
            if i > 0 and int(names[i][:-4]) != int(names[i - 1][:-4]) + 1:
                s.bad(0, f'does not follow {names[i - 1]}')
            if i > 0 and segments[i - 1] and s.before != self.before and not problems:
                s.bad(0, f'follows the record {s.before}, not {self.before}')
            if self.head == 0 and not self.records:
                self.head = s.head
            self.before = s.before
            self.take(s, segments[i + 1] if i + 1 < len(segments) else 0)
        if self.ledger:
            self.ledger.check({int(name[:-4]): s for name, s in zip(names, segments)}, self.clean)

    def read_ledger(self, directory, segments, problems):
        ledgers = sorted((n for n in os.listdir(directory) if re.fullmatch(r'\d{8,}\.ledger', n)), key=lambda n: int(n[:-7]))
        if any(segments) and not any(s and s.version == 2 for s in segments):
            return None
        if ledgers:
            try:
                return Ledger(os.path.join(directory, ledgers[-1]), ledgers[-1], problems)
            except Damage as damage:
                problems.append(f'journal/{damage}')
        elif any(s and len(s.data) > s.start for s in segments):
            problems.append('journal: there is no ledger')
        return None

    def take(self, s, following):
        self.clean = False
        if following == 0:
            end, self.clean = s.judge_last(self.ledger.closed[1] if self.ledger and self.ledger.closed[0] == s.number else 0)
        else:
            linked = following is not None and following.previous == s.number
            end = s.judge_inner(following.previous_end if linked else len(s.data))
        schema = None
        for kind, start, stop, (seq, parent, tick, _, flags, _, crc), payload in s.found:
            if start < end and kind == PREAMBLE:
                schema = payload
            elif start < end and kind == SEAL:
                self.head = seq
            elif start < end and kind == 0:
                self.before = [s.epoch, seq, crc]
                self.records[seq] = parent, self.before, payload, schema
                self.head = seq

    def way(self):
        """The records that lead to the head, oldest first."""
        way, seq = [], self.head
        while seq in self.records:
            way.append(self.records[seq])
            seq = self.records[seq][0]
        return way[::-1]


# ---- Page files and snapshots

class PageFile:
    """The pages of a file, by (column, page)."""

    def __init__(self, path, name):
        self.name, self.data, self.pages, self.nodes = name, read(path), {}, set()
        footer = self.data[-64:]
        self.need(len(footer) == 64 and footer[:8] == b'StetPage', 0, 'not a page file, or cut short')
        self.need(crc32c(footer[:60]) == u32(footer, 60), len(self.data) - 64, 'the footer is damaged')
        self.need(struct.unpack_from('<2I', footer, 8) == (1, 0), len(self.data) - 56, 'written by a newer program')
        self.length, block, self.crc, blocks, count = struct.unpack_from('<Q2I2Q', footer, 16)
        self.need(block == 65536 and blocks == (self.length + 65535) // 65536 and self.length + 4 * blocks + 64 == len(self.data),
                  len(self.data) - 64, 'the footer does not fit the file')
        table = self.data[self.length:-64]
        self.need(crc32c(table) == self.crc, self.length, 'the table is damaged')
        for i in range(blocks):
            self.need(crc32c(self.data[65536 * i:min(65536 * (i + 1), self.length)]) == u32(table, 4 * i), 65536 * i, 'the block is damaged')
        metas = [self.meta(i) for i in (0, 1)]
        self.need(metas[0] == metas[1], 4096, 'the meta pages differ')
        self.bucket(metas[0])
        self.need(len(self.pages) == count, 0, f'{len(self.pages)} pages, not {count}')

    def need(self, ok, at, what): need(ok, f'{self.name} at offset {at}: {what}')

    def meta(self, i):
        at = 4096 * i + 16
        magic, version, size, flags, root, _, freelist, high, transaction, crc = struct.unpack_from('<4I6Q', self.data, at)
        self.need((magic, version, size, flags, freelist, high) == (0xED0CDAED, 2, 4096, 0, M, self.length // 4096)
                  and transaction % 2 == i and crc == fnv1a(self.data[at:at + 56]), at, 'not the meta page of a page file')
        return root

    def bucket(self, root):
        at = 4096 * root
        self.need(self.node(at, root) == (2, 1), at, 'the root is no leaf of one entry')
        flags, pos, ksize, vsize = struct.unpack_from('<4I', self.data, at + 16)
        key = at + 16 + pos
        self.need(flags == 1 and self.data[key:key + ksize] == b'pages', at, 'the root names no bucket')
        top = u64(self.data, key + ksize)
        self.walk(4096 * top if top else key + ksize + 16, top)

    def node(self, at, page):
        number, flags, count, _ = struct.unpack_from('<Q2HI', self.data, at)
        self.need(number == page, at, f'page {page} says that it is page {number}')
        return flags, count

    def walk(self, at, page):
        flags, count = self.node(at, page)
        self.need(flags in (1, 2), at, 'neither branch nor leaf')
        for element in range(at + 16, at + 16 + 16 * count, 16):
            if flags == 1:
                child = u64(self.data, element + 8)
                self.need(child not in self.nodes, at, 'a page that belongs to two nodes')
                self.nodes.add(child)
                self.walk(4096 * child, child)
                continue
            _, pos, ksize, vsize = struct.unpack_from('<4I', self.data, element)
            key = struct.unpack_from('>2I', self.data, element + pos)
            self.pages[key] = self.data[element + pos + ksize:element + pos + ksize + vsize]


def zstd_decompressor():
    """What decompresses one frame, and has what is behind it as unused_data; None: nothing is there that can."""
    try:
        from compression import zstd
        return zstd.ZstdDecompressor()
    except ImportError:
        pass
    try:
        import zstandard
        return zstandard.ZstdDecompressor().decompressobj()
    except ImportError:
        return None


def decompressed(size, total, frame):
    """The content of a compressed page."""
    need(crc32c(frame) == total, 'a compressed page is damaged')
    need(0 < size <= 256 * len(frame), f'{size} bytes in {len(frame)} compressed ones')
    decompressor = zstd_decompressor()
    need(decompressor, 'it is compressed, which takes Python 3.14 or the module zstandard (pip install zstandard)')
    need(frame[:4] == b'\x28\xb5\x2f\xfd' and frame[4] & 0b00000111 == 0 and content_size(frame) == size, 'not a frame of that size')
    try:
        content = decompressor.decompress(frame)
    except Exception as error: # Each module has its own.
        raise Damage(f'a frame that cannot be decompressed: {error}')
    behind = decompressor.unused_data
    need(len(content) == size, f'{len(content)} bytes in a frame of {size}')
    need(not any(behind) and len(behind) == max(0, (size + 255) // 256 - (len(frame) - len(behind))), 'bytes behind the frame')
    return content


def content_size(frame):
    """How long the content is, as the header of a frame without a dictionary says."""
    single, length = frame[4] >> 5 & 1, frame[4] >> 6
    at = 6 - single
    if length == 0:
        return frame[at] if single else None
    return int.from_bytes(frame[at:at + (1 << length)], 'little') + (256 if length == 1 else 0)


class Snapshot(PageFile):
    def __init__(self, path, name):
        super().__init__(path, name)
        self.path, self.repeats, self.compressed = path, False, False
        manifest = whole(self.content((0, 0)))
        need(manifest[0] in (1, 2, 3, 4), f'{name}: manifest of format {manifest[0]}, written by a newer program')
        features = manifest[14] if manifest[0] >= 3 else []
        for feature, required in features:
            need(not required or feature in ('repeats', 'zstd'), f'{name}: it needs the feature {feature}')
        self.repeats, self.compressed = (([feature, True] in features) for feature in ('repeats', 'zstd'))
        (_, self.world, self.number, self.identity, self.tick, schema, self.stated, self.alive, self.free, self.total,
         self.sizes, self.files) = manifest[:12]
        self.components, self.others = components(schema), {}

    def content(self, key):
        self.need(key in self.pages, 0, f'page {key} is missing')
        kind, crc, content = whole(self.pages[key])
        self.need(kind in (0, 1, 2, 3), 0, f'page {key} is of the kind {kind}')
        if kind in (1, 2):
            column, page = key
            number, other = (content, column) if kind == 1 else content
            self.need(kind == 1 or self.repeats and self.may_repeat(column, other), 0, f'page {key} cannot repeat one of column {other}')
            kind, there, content = whole(self.file(number, kind).pages.get((other, page), b'\x93\x01\x00\x00'))
            self.need(kind in (0, 3) and there == crc, 0, f'page {key} is not the one that it refers to')
        if kind == 3:
            self.need(self.compressed, 0, f'page {key} cannot be compressed')
            content = decompressed(*content)
        self.need(crc32c(content) == crc, 0, f'page {key} is damaged')
        return content

    def may_repeat(self, column, other):
        return other == 1 < column and column % 4 == 1 or 8 <= other < column and other % 4 == column % 4 < 2

    def file(self, number, kind):
        if kind == 2 and number in (0, self.number):
            return self
        if number not in self.others:
            name = f'{number:08}.snap'
            self.others[number] = other = PageFile(os.path.join(os.path.dirname(self.path), name), f'snapshots/{name}')
            self.need([number, other.crc] in self.files, 0, f'{name} is not the file that it refers to')
        return self.others[number]

    def column(self, column, n, in_page):
        return (self.content((column, page)) for page in range((n + in_page - 1) // in_page))

    def state(self):
        state = State()
        state.tick, state.identity, state.alive, state.free, state.components = self.tick, self.identity, self.alive, self.free, self.components
        state.registry = entities(b''.join(self.column(1, self.total, 4096)))
        for number, (c, (n, in_page)) in enumerate(zip(self.components, self.sizes)):
            column = 8 + 4 * number
            if not c.resource:
                c.entities = entities(b''.join(self.column(column + 1, n, 4096)))
                self.check_sparse(column, c)
            if width(c.layout) == 0:
                c.rows = [b''] * n
                continue
            for page, content in enumerate(self.column(column + 2, n, in_page)):
                c.rows += rows_of(c.layout, content, min(in_page, n - page * in_page))
        self.need(state.digest() == self.stated, 0, 'the digest differs')
        return state

    def check_sparse(self, column, c):
        """The sparse array says again in which row an entity is."""
        found = {}
        for (at, page) in self.pages:
            if at == column:
                entry, row, numbers = 4096 * page, -1, varints(self.content((at, page)))
                for skip in numbers:
                    entry, row = entry + skip, row + 1 + zigzag(next(numbers))
                    found[entry] = row
                    entry += 1
        self.need(found == {index(e): row for row, e in enumerate(c.entities) if e != VACANT}, 0, f'the sparse array of {c.name} is another')


# ---- Stores

def read(path):
    with open(path, 'rb') as file:
        return file.read()


def recover(directory, problems):
    """The newest state of a store, and whether it was closed."""
    journal = Journal(os.path.join(directory, 'journal'), problems)
    snapshots = []
    for name in sorted((n for n in os.listdir(os.path.join(directory, 'snapshots')) if re.fullmatch(r'\d{8,}\.snap', n)), key=lambda n: int(n[:-5])):
        try:
            snapshots.append(Snapshot(os.path.join(directory, 'snapshots', name), f'snapshots/{name}'))
        except (Damage, OSError) as damage:
            problems.append(str(damage))
    names, sums = os.listdir(os.path.join(directory, 'snapshots')), {s.number: s.crc for s in snapshots}
    for number, crc in (journal.ledger.promised() if journal.ledger else {}).items():
        if f'{number:08}.snap' not in names or sums.get(number, crc) != crc:
            problems.append(f'snapshots/{number:08}.snap: it is not there, or another than the journal says')
    way = journal.way()
    at = {tuple(identity): i + 1 for i, (_, identity, _, _) in enumerate(way)}  # How many records lead to a state.
    if way:
        at[tuple(whole(way[0][2])[1])] = 0
    else:
        at.update({tuple(s.identity): 0 for s in snapshots if s.identity[1] == journal.head})
    usable = [s for s in snapshots if tuple(s.identity) in at]
    for s in sorted(usable, key=lambda s: (at[tuple(s.identity)], s.number), reverse=True):
        behind = way[at[tuple(s.identity)]:]
        try:
            if behind and not continues(s.components, components(behind[0][3])):
                continue
            state = s.state()
        except (Damage, OSError) as damage:
            problems.append(f'{s.name}: {damage}')
            continue
        for _, identity, payload, schema in behind:
            state.adopt(schema)
            state.apply(payload, identity)
        return state, journal.clean
    raise Damage('no snapshot leads to the newest state')


def document(path):
    problems, clean = [], True
    try:
        if os.path.isdir(path):
            state, clean = recover(path, problems)
        else:
            state = Snapshot(path, os.path.basename(path)).state()
        state.settle()
    except (Damage, OSError, ValueError, IndexError, KeyError, TypeError, struct.error) as damage:
        return {'path': path, 'problems': problems + [f'{type(damage).__name__}: {damage}']}
    entity = lambda e: None if e == VACANT else f'{index(e)}v{e >> 32}'
    value = lambda t, row: shown(t, unpack(row)[0] if width(t) is None else unpacked(t, row)[0])
    return {'path': path, 'problems': problems, 'clean': clean, 'tick': state.tick, 'digest': f'{state.digest():016x}',
            'alive': [entity(e) for e in state.registry[:state.alive]],
            'components': [{'name': c.name, 'resource': c.resource, 'entities': [entity(e) for e in c.entities],
                            'rows': [value(c.layout, row) for row in c.rows]} for c in state.components]}


if __name__ == '__main__':
    for path in sys.argv[1:]:
        print(json.dumps(document(path)))
