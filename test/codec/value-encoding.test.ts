import { unpack } from "msgpackr";
import { describe, expect, test } from "vitest";
import { packValue, unpackValue } from "../../src/codec/value-encoding.ts";
import { FastMsgpackEncoder } from "../../src/codec/fast-msgpack.ts";
import { MAX_ENCODED_BYTES } from "../../src/codec/size-limits.ts";
import { MSGPACK_STRUCTURES } from "../../src/codec/msgpack-structures.ts";
import { toStorable } from "../../src/model/json.ts";
import { sha256Hex } from "../../src/model/ids.ts";
import { ClassInstance } from "../../src/model/non-json-data.ts";

const MIB = 1024 * 1024;
const again = (value: unknown): unknown => unpackValue(packValue(value, 8), 8);
/** Compares JSON texts: `toEqual` takes a second for the large values. */
const same = (value: unknown, other: unknown): void => {
  if (JSON.stringify(value) !== JSON.stringify(other)) expect(value).toEqual(other);
};

const numbers = [
  0,
  1,
  127,
  128,
  255,
  256,
  65_535,
  65_536,
  2 ** 31,
  2 ** 32 - 1,
  2 ** 32,
  1_795_351_310_806,
].flatMap((n) => [n, 0 - n, n + 0.5, -n - 0.5]);
const lengths = [0, 1, 15, 16, 31, 32, 63, 64, 255, 256, 21_845, 21_846, 65_535, 65_536, 200_000];
const counts = [0, 1, 15, 16, 65_535, 65_536];
const texts = ["a", "é", "中", "😀", "\uFFFD", "퀀"];
const values: readonly unknown[] = [
  null,
  true,
  false,
  ...numbers,
  Number.MAX_SAFE_INTEGER,
  Number.MIN_VALUE,
  Number.MAX_VALUE,
  ...lengths.flatMap((length) => texts.map((text) => text.repeat(length))),
  ...counts.map((length) => Array.from({ length }, (_, i) => i)),
  ...counts.map((length) => Object.fromEntries(Array.from({ length }, (_, i) => [`n${i}`, i]))),
  { "": "", constructor: 1, toString: { hasOwnProperty: 2 }, é: "ü" },
  Object.assign(Object.create(null), { a: 1 }),
];

describe("a value comes back as it was", () => {
  test("each by itself", () => {
    for (const value of values) same(again(value), value);
    expect(again(values)).toHaveLength(values.length);
  });

  test("all in one, and deep", () => {
    let deep: unknown = values;
    for (let i = 0; i < 256; i++) deep = i % 2 === 0 ? [deep] : { deep };
    expect(JSON.stringify(again(deep))).toBe(JSON.stringify(deep));
  });

  test("a text of hundreds of megabytes", () => {
    const text = "x".repeat(360_000_000);
    // Compares lengths and ends, because comparing everything takes longer.
    const { a, b } = again({ a: text, b: "after it" }) as { readonly a: string; readonly b: string };
    expect([a.length, a.slice(-3), b]).toEqual([text.length, "xxx", "after it"]);
  });

  test("minus zero is zero, as in JSON", () => {
    expect(again(-0)).toBe(0);
  });

  test.each([
    ["half a pair", "a\ud800b"],
    ["half a pair in a long text", `${"x".repeat(500)}\udc00`],
    ["a member named __proto__", JSON.parse('{"a": {"__proto__": {"b": 1}}}')],
    ["a name with half a pair", { "\ud800": 1 }],
  ])("%s", (_, value) => {
    const back = again({ value, beside: [1] });
    expect(JSON.stringify(back)).toBe(JSON.stringify({ value, beside: [1] }));
  });

  test("what is kept as data", () => {
    const back = again({ kept: new ClassInstance("HumanMessage", { content: "hi" }) }) as {
      readonly kept: ClassInstance;
    };
    expect(back.kept).toBeInstanceOf(ClassInstance);
    expect(ClassInstance.kindOf(back.kept)).toBe("HumanMessage");
  });
});

describe("what is written in short", () => {
  const id = "01a20520-a4c2-7b89-a6fd-d54beb91d247";

  test("an object of each structure", () => {
    for (const names of MSGPACK_STRUCTURES) {
      const value = Object.fromEntries(
        names.map((name, i) => [name, i % 2 === 0 ? { [name]: [i + 60] } : id]),
      );
      for (const whole of [value, [value, value], { value, more: value }]) {
        expect(JSON.stringify(again(whole))).toBe(JSON.stringify(whole));
      }
      const reversed = Object.fromEntries(Object.entries(value).reverse());
      expect(JSON.stringify(again(reversed))).toBe(JSON.stringify(reversed));
      const longer = { ...value, more: 1 };
      expect(JSON.stringify(again(longer))).toBe(JSON.stringify(longer));
      const [, ...fewer] = Object.entries(value);
      expect(JSON.stringify(again(Object.fromEntries(fewer)))).toBe(
        JSON.stringify(Object.fromEntries(fewer)),
      );
    }
  });

  test("all beside one another, between texts of any length", () => {
    const texts = Array.from({ length: 300 }, (_, length) => (length % 3 === 0 ? "é" : "x").repeat(length));
    const whole = texts.map((text, i) => {
      const names = MSGPACK_STRUCTURES[i % MSGPACK_STRUCTURES.length] as readonly string[];
      return [
        id,
        Object.fromEntries(names.map((name, n) => [name, n % 2 === 0 ? text : id])),
        text,
        { [text]: id },
      ];
    });
    expect(JSON.stringify(again(whole))).toBe(JSON.stringify(whole));
  });

  test("no two structures are the same", () => {
    expect(new Set(MSGPACK_STRUCTURES.map((names) => names.join())).size).toBe(MSGPACK_STRUCTURES.length);
  });

  test("every number of one byte, and those about it", () => {
    const some = Array.from({ length: 600 }, (_, i) => i - 300);
    expect(again(some)).toEqual(some);
    for (const n of some) expect(again(n)).toBe(n);
  });

  test("a UUID, of any version, and none", () => {
    const ids = [id, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"];
    for (const one of ids) expect(again({ one, [one]: [one] })).toEqual({ one, [one]: [one] });
    expect(packValue(id, 8)).toHaveLength(8 + 1 + 18);
  });

  test("a long text, of ASCII and not, between others", () => {
    for (const text of [
      "x".repeat(MIB - 1),
      "x".repeat(MIB),
      `"\\\n\u007f${"x".repeat(MIB)}`,
      `${"x".repeat(MIB)}é`,
    ]) {
      const value = { before: "short", text, after: ["a", text, "b"], [text]: 1 };
      same(again(value), value);
    }
    // An extension has a byte for its type.
    expect(packValue("x".repeat(MIB), 8)).toHaveLength(8 + 1 + 6 + MIB);
    expect(packValue("x".repeat(MIB - 1), 8)).toHaveLength(8 + 1 + 5 + MIB - 1);
  });

  test("a text that is nearly a UUID is none", () => {
    const near = [id.toUpperCase(), id.replace("a", "g"), id.replaceAll("-", "_"), id.replaceAll("-", "0")];
    for (let at = 0; at < id.length; at++) {
      // Characters that differ in one bit, also above ASCII.
      for (let bit = 0; bit < 16; bit++) {
        near.push(id.slice(0, at) + String.fromCharCode(id.charCodeAt(at) ^ (1 << bit)) + id.slice(at + 1));
      }
    }
    for (const text of near) expect(again([text])).toEqual([text]);
  });

  test("is read as it was stored: the numbers of structures do not change", () => {
    const stored = "049345a36f6e65d84a01a20520a4c27b89a6fdd54beb91d2474dcc404f4e0156a5746f6b656e03a161";
    const value = [
      { graph_id: "one", assistant_id: id },
      { at: 64, channels: { value: { is: 1 } } },
      { t: "token", m: 3, text: "a" },
    ];
    expect(unpackValue(Buffer.from(stored, "hex"), 0)).toEqual(value);
    expect(packValue(value, 0).toString("hex")).toBe(stored);
    // The structures of format 4; later ones are added at the end.
    expect(sha256Hex(JSON.stringify(MSGPACK_STRUCTURES.slice(0, 31)))).toBe(
      "05878a8445fee99fbdc0d16cb27ecbb331c9e8ea869a96048fcd8141d88c9370",
    );
  });
});

describe("the packer of plain data", () => {
  test("writes what any reader of MessagePack takes, one value beside another", () => {
    const packer = new FastMsgpackEncoder();
    const packed = values.map((value) => packer.pack(value, 3));
    for (const [i, value] of values.entries()) {
      const bytes = packed[i];
      same(bytes && unpack(bytes.subarray(3)), value);
    }
    expect(packed).toHaveLength(values.length);
  });

  test("an object that comes again is the same, wherever the bytes lie", () => {
    const packer = new FastMsgpackEncoder();
    const shared = Object.freeze({ a: "x".repeat(300), b: 1, c: null, d: [1] });
    let declined = 0;
    for (let i = 0; i < 1_000; i++) {
      const value = [i, shared, "between", shared, { shared }];
      const bytes = packer.pack(value, 0);
      // It may refuse while it moves to another buffer.
      if (bytes === undefined) declined++;
      else same(unpack(bytes), value);
    }
    expect(declined).toBeLessThan(50);
  });

  test("an object that has changed since is written anew", () => {
    const packer = new FastMsgpackEncoder();
    const value = { a: 1, b: 2, c: 3, d: 4 };
    packer.pack([value], 0);
    value.a = 5;
    expect(unpack(packer.pack([value], 0) as Buffer)).toEqual([{ a: 5, b: 2, c: 3, d: 4 }]);
  });

  test("declines all that is not plain, and goes on after it", () => {
    const packer = new FastMsgpackEncoder();
    const others = [undefined, 1n, () => 1, Symbol("s"), new Date(0), new Map(), new Uint8Array(2), /a/];
    for (const other of others) {
      expect(packer.pack({ a: 1, b: 2, c: 3, d: 4, other }, 0)).toBeUndefined();
      expect(unpack(packer.pack(["whole"], 0) as Buffer)).toEqual(["whole"]);
    }
  });
});

describe("a value that no reader could decode is refused", () => {
  /** 540 MB of UTF-8. */
  const long = "é".repeat(270_000_000);

  test("a text of more than 512 MiB, by itself and beside a class instance", () => {
    const refusal = {
      code: "value.unstorable",
      message: "A text of more than 512 MiB cannot be stored: store it outside the state",
    };
    expect(() => packValue([long], 0)).toThrowError(expect.objectContaining(refusal));
    const instance = new ClassInstance("Kind", { a: 1 });
    expect(() => packValue([instance, { long }], 0)).toThrowError(expect.objectContaining(refusal));
  });

  test("more bytes in all than a value may have", () => {
    expect(MAX_ENCODED_BYTES).toBe(2 ** 31 - 1);
    const packer = new FastMsgpackEncoder(1_000_000);
    const part = "x".repeat(240_000);
    const message = "A value of more than 2 GiB cannot be stored: store it outside the state";
    expect(() => packer.pack([part, part, part, part, part], 0)).toThrowError(
      expect.objectContaining({ code: "value.unstorable", message }),
    );
    expect(packer.pack([part, part, part, part], 0)).toHaveLength(1 + 4 * 240_005);
  });

  test("a text of more than 512 MiB in a node's output, and the error names its path", () => {
    expect(() => toStorable({ a: [long] }, "update")).toThrowError(
      expect.objectContaining({
        code: "value.unstorable",
        message: "update.a[0] cannot be stored: it is a text of more than 512 MiB",
      }),
    );
    expect(toStorable(long.slice(1, 200_000_000), "update")).toHaveLength(199_999_999);
  });
});

test.each(["x", "é", "中", "😀"])("a large text takes little more memory than its bytes: %s", (unit) => {
  const text = unit.repeat(1_000_000);
  const bytes = packValue({ before: [1, "a"], text, after: [null, { a: true }] }, 8);
  expect(bytes.buffer.byteLength).toBeLessThan(1.1 * Buffer.byteLength(text));
});
