import { bad, type Case, type Cases } from "../Run.ts"

const of = (
  inputs: Case["inputs"],
  output: Case["output"],
  options: Case["options"] = {},
  warnings: Case["warnings"] = []
): Case => ({ inputs, output, options, warnings })

const table = { a: 1, b: "two" }
const fallback = ["LOOKUP_FALLBACK_USED"]
const noMatch = ["NO_MATCH"]
const guess = ["DIALECT_GUESSED"]
const pick = (
  list: unknown,
  operation: unknown,
  result: unknown,
  warnings: ReadonlyArray<string> = [],
  preset?: unknown
): Case => of({ list, ...(preset === undefined ? {} : { default: preset }) }, { result }, { operation }, warnings)
const items = (...of: ReadonlyArray<unknown>) => ({ items: of, count: of.length })

const csv = (
  text: string,
  line_items: ReadonlyArray<object>,
  about: { readonly header?: boolean; readonly dialect?: readonly [string, string | null]; readonly csv_text: string },
  options: Case["options"] = {},
  warnings: Case["warnings"] = guess
): Case =>
  of(
    { csv: text },
    {
      line_items,
      header: about.header ?? true,
      row_count: line_items.length,
      dialect: { name: about.dialect?.[0] ?? "comma", delimiter: about.dialect === undefined ? "," : about.dialect[1] },
      csv_text: about.csv_text
    },
    options,
    warnings
  )

export const utilities: Cases = {
  "utility.lookup_table": [
    of({ input: "a" }, { result: 1 }, { table }),
    of({ input: "b" }, { result: "two" }, { table }),
    of({ input: "c" }, { result: "" }, { table }, fallback),
    of({ input: "c", fallback: "none" }, { result: "none" }, { table }, fallback),
    of({ input: "A" }, { result: 1 }, { table, case_sensitive: false }),
    of(
      { input: "", fallback: "f" },
      { result: "f" },
      {
        table: [
          ["", "x"],
          ["a", "y"]
        ]
      },
      fallback
    ),
    of({ input: 1 }, { result: "one" }, { table: [["1", "one"]] }, ["INPUT_COERCED"]),
    of({ input: ["a", "b"] }, { result: [1, "two"] }, { table }),
    of({ input: "a" }, "FORMATTER_CONFIG_INVALID"),
    of({ input: "a" }, "FORMATTER_CONFIG_INVALID", { table: {} }),
    of({ input: "a" }, "FORMATTER_CONFIG_INVALID", {
      table: [
        ["a", 1],
        ["a", 2]
      ]
    }),
    of({ input: "" }, "FORMATTER_CONFIG_INVALID", { table: { a: 1, A: 2 }, case_sensitive: false }),
    of({ input: "A" }, { result: 2 }, { table: { a: 1, A: 2 } }),
    of({ input: "k" }, { result: "v" }, { table: [{ key: "k", value: "v" }] }),
    of({ input: "__proto__" }, { result: "" }, { table }, fallback),
    of({ input: "a" }, "FORMATTER_CONFIG_INVALID", {
      table: Object.fromEntries(Array.from({ length: 501 }, (_, at) => [`k${at}`, at]))
    })
  ],
  "utility.pick_from_list": [
    pick(["", 1, ""], "last", 1),
    pick([0], "first", 0, [], 1),
    pick(["", 2, 3, ""], -1, 3),
    pick(["a", "b"], "first", "a"),
    pick(["a", "b"], 1, "b"),
    pick(["a"], 5, "", noMatch),
    pick(["", null], "first", "d", noMatch, "d"),
    pick([], "last", "", noMatch),
    pick("a", "first", "a"),
    pick(["a", "a"], "random", "a", ["RANDOM_SEEDED"]),
    pick([{ a: 1 }], "first", { a: 1 }),
    of({ list: ["a"] }, "FORMATTER_CONFIG_INVALID", { operation: "middle" }),
    of({ list: ["a"] }, "FORMATTER_CONFIG_INVALID"),
    of({ list: null }, "FORMATTER_INPUT_REQUIRED", { operation: "first" })
  ],
  "utility.text_to_line_items": [
    of({ input: "a,b," }, items("a", "b", "")),
    of({ input: "" }, items()),
    of({ input: "a,b" }, items("a", "b")),
    of({ input: "a; b", separator: ";" }, items("a", "b"), { trim: true }),
    of({ input: "a,,b" }, items("a", "b"), { skip_empty: true }),
    of({ input: "a\nb", separator: "[:n:]" }, items("a", "b")),
    of({ input: "a" }, items("a")),
    of({ input: "abc", separator: "" }, items("abc")),
    of({ input: " , " }, items(), { trim: true, skip_empty: true }),
    of({ input: ["a"] }, "FORMATTER_LINE_ITEMS_NOT_SUPPORTED"),
    of({ input: ",".repeat(1000) }, "FORMATTER_LIMIT_EXCEEDED"),
    of({ input: 5 }, items("5"), {}, ["INPUT_COERCED"])
  ],
  "utility.line_items_to_text": [
    of({ list: ["a", "b"] }, { text: "a,b", item_1: "a", item_2: "b", item_last: "b", count: 2 }),
    of({ list: [] }, { text: "", item_1: "", item_last: "", count: 0 }),
    of({ list: ["a"], separator: "-" }, { text: "a", item_1: "a", item_last: "a", count: 1 }),
    of(
      { list: ["a", "b"], separator: "[:newline:]" },
      { text: "a\nb", item_1: "a", item_2: "b", item_last: "b", count: 2 }
    ),
    of({ list: [1, true] }, { text: "1,true", item_1: "1", item_2: "true", item_last: "true", count: 2 }),
    of({ list: [null, "a"] }, { text: ",a", item_1: "", item_2: "a", item_last: "a", count: 2 }),
    of({ list: [{ a: 1 }] }, { text: '{"a":1}', item_1: '{"a":1}', item_last: '{"a":1}', count: 1 }),
    of({ list: "solo" }, { text: "solo", item_1: "solo", item_last: "solo", count: 1 }),
    of({ list: null }, "FORMATTER_INPUT_REQUIRED"),
    of({ list: Array.from({ length: 1001 }, () => "a") }, "FORMATTER_LIMIT_EXCEEDED"),
    // Refused before the 131 MB of it are built.
    of({ list: Array.from({ length: 1000 }, () => "a"), separator: "-".repeat(131_000) }, "FORMATTER_OUTPUT_TOO_LARGE"),
    of({ list: ["a", "b"], separator: "" }, { text: "ab", item_1: "a", item_2: "b", item_last: "b", count: 2 }),
    of({ list: ["x"], other: 1 }, "FORMATTER_INPUT_INVALID"),
    of(
      { list: Array.from({ length: 101 }, (_, at) => at) },
      {
        text: Array.from({ length: 101 }, (_, at) => at).join(","),
        ...Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`item_${at + 1}`, String(at)])),
        item_last: "100",
        count: 101
      },
      {},
      ["OUTPUT_CAPPED"]
    )
  ],
  "utility.append_line_items": [
    of({ lists: [["a"], ["b", "c"]] }, items("a", "b", "c")),
    of({ lists: ["a", "b"] }, items("a", "b")),
    of({ lists: [["a"], "b", ["c"]] }, items("a", "b", "c")),
    of({ lists: [[], []] }, items()),
    of({ lists: [["", "a"], [null]] }, items("a"), { skip_empty: true }),
    of({ lists: [["", "a"], [null]] }, items("", "a", null)),
    of({ lists: [["a"]] }, "FORMATTER_INPUT_INVALID"),
    of({ lists: "a" }, "FORMATTER_INPUT_INVALID"),
    of({ lists: Array.from({ length: 11 }, () => "a") }, "FORMATTER_LIMIT_EXCEEDED"),
    of(
      { lists: [Array.from({ length: 600 }, () => 1), Array.from({ length: 600 }, () => 1)] },
      "FORMATTER_LIMIT_EXCEEDED"
    ),
    of({ lists: [[{ a: 1 }], [{ b: 2 }]] }, items({ a: 1 }, { b: 2 })),
    of({ lists: null }, "FORMATTER_INPUT_REQUIRED"),
    of({ lists: [[0], [false]] }, items(0, false), { skip_empty: true })
  ],
  "utility.line_itemizer": [
    of(
      { properties: { price: "a,b,c,d", name: "one,two,three" } },
      {
        line_items: [
          { price: "a", name: "one" },
          { price: "b", name: "two" },
          { price: "c", name: "three" },
          { price: "d" }
        ],
        count: 4
      },
      {},
      ["LINE_ITEM_LENGTH_MISMATCH"]
    ),
    of({ properties: { a: [1, 2] } }, { line_items: [{ a: 1 }, { a: 2 }], count: 2 }),
    of({ properties: { a: "x" }, group_name: "rows" }, { rows: [{ a: "x" }], count: 1 }),
    of(
      { properties: { price: ["2.50"], quantity: [3] } },
      { line_items: [{ price: "2.50", quantity: 3, subtotal: 7.5 }], count: 1 },
      { subtotal: true }
    ),
    of(
      { properties: { price: ["1.005"], qty: ["1"] } },
      { line_items: [{ price: "1.005", qty: "1", subtotal: 1.01 }], count: 1 },
      { subtotal: true }
    ),
    of({ properties: { price: ["x"] } }, { line_items: [{ price: "x" }], count: 1 }, { subtotal: true }, [
      "INPUT_SKIPPED"
    ]),
    of({ properties: { a: "1, 2" } }, { line_items: [{ a: "1" }, { a: "2" }], count: 2 }),
    of({ properties: { a: ["", "b"] } }, { line_items: [{ a: "" }, { a: "b" }], count: 2 }),
    of({ properties: {} }, "FORMATTER_INPUT_INVALID"),
    of({ properties: { a: "x" }, group_name: ["a"] }, "FORMATTER_INPUT_INVALID"),
    of({ properties: null }, "FORMATTER_INPUT_REQUIRED"),
    of({ properties: { a: "x" }, group_name: "count" }, "FORMATTER_INPUT_INVALID"),
    of(
      {
        properties: [
          ["a", [1]],
          ["b", [2]]
        ]
      },
      { line_items: [{ a: 1, b: 2 }], count: 1 }
    )
  ],
  "utility.line_item_numbering": [
    of(
      { line_items: [{ a: 1 }, { a: 2 }] },
      {
        line_items: [
          { a: 1, number: 1 },
          { a: 2, number: 2 }
        ],
        count: 2
      }
    ),
    of({ line_items: [{}], name: "" }, { line_items: [{ number: 1 }], count: 1 }),
    of({ line_items: [{}], name: "pos", start: 10 }, { line_items: [{ pos: 10 }], count: 1 }),
    of({ line_items: [{}, {}], step: 5 }, { line_items: [{ number: 1 }, { number: 6 }], count: 2 }),
    of({ line_items: [{ number: "x" }] }, { line_items: [{ number: "x" }], count: 1 }, {}, ["PROPERTY_EXISTS"]),
    of({ line_items: ["a"] }, { line_items: [{ value: "a", number: 1 }], count: 1 }),
    of({ line_items: [] }, { line_items: [], count: 0 }),
    of({ line_items: [{}], start: 0 }, { line_items: [{ number: 0 }], count: 1 }),
    of({ line_items: [{}, {}], step: -1 }, { line_items: [{ number: 1 }, { number: 0 }], count: 2 }),
    of({ line_items: null }, "FORMATTER_INPUT_REQUIRED"),
    of({ line_items: [{}], start: 1.5 }, "FORMATTER_INPUT_INVALID"),
    of({ line_items: { a: 1 } }, { line_items: [{ a: 1, number: 1 }], count: 1 }),
    of({ line_items: Array.from({ length: 1001 }, () => ({})) }, "FORMATTER_LIMIT_EXCEEDED")
  ],
  "utility.import_csv": [
    csv("name,city\nAda,London\n", [{ name: "Ada", city: "London" }], { csv_text: "name,city\r\nAda,London\r\n" }),
    csv('a,b\n"x,1","y ""q"""\n', [{ a: "x,1", b: 'y "q"' }], { csv_text: 'a,b\r\n"x,1","y ""q"""\r\n' }),
    csv("a;b\n1;2", [{ a: "1", b: "2" }], { dialect: ["semicolon", ";"], csv_text: "a,b\r\n1,2\r\n" }),
    csv("a\tb\n1\t2", [{ a: "1", b: "2" }], { dialect: ["tab", "\t"], csv_text: "a,b\r\n1,2\r\n" }),
    csv("a|b\n1|2", [{ a: "1", b: "2" }], { dialect: ["pipe", "|"], csv_text: "a,b\r\n1,2\r\n" }),
    csv(
      "1,2\n3,4",
      [
        { item_1: "1", item_2: "2" },
        { item_1: "3", item_2: "4" }
      ],
      { header: false, csv_text: "1,2\r\n3,4\r\n" }
    ),
    csv("a,b\n1,true", [{ a: 1, b: true }], { csv_text: "a,b\r\n1,true\r\n" }, { types: "infer" }),
    // A cell beyond the columns takes no other one's place.
    csv("a,extra_1\n1,2,3", [{ a: "1", extra_1: "2", extra_1_2: "3" }], { csv_text: "a,extra_1\r\n1,2,3\r\n" }, {}, [
      ...guess,
      "RAGGED_ROW"
    ]),
    csv("a,a\n1,2", [{ a: "1", a_2: "2" }], { csv_text: "a,a\r\n1,2\r\n" }, {}, [...guess, "DUPLICATE_HEADER_RENAMED"]),
    csv(
      "a,b\n1\n2,3,4",
      [
        { a: "1", b: "" },
        { a: "2", b: "3", extra_1: "4" }
      ],
      { csv_text: "a,b\r\n1\r\n2,3,4\r\n" },
      {},
      [...guess, "RAGGED_ROW", "RAGGED_ROW"]
    ),
    csv(
      "=1+1,x\ny,z",
      [
        { item_1: "=1+1", item_2: "x" },
        { item_1: "y", item_2: "z" }
      ],
      { header: false, csv_text: "=1+1,x\r\ny,z\r\n" },
      { header: "no" }
    ),
    csv("\ufeffa,b\r\n1,2\r\n\r\n", [{ a: "1", b: "2" }], { csv_text: "a,b\r\n1,2\r\n" }),
    csv(
      "a,b\nc",
      [{ item_1: "a,b" }, { item_1: "c" }],
      { header: false, dialect: ["single_column", null], csv_text: '"a,b"\r\nc\r\n' },
      { dialect: "single_column", header: "no" },
      []
    ),
    csv("", [], { header: false, dialect: ["single_column", null], csv_text: "" }),
    of({ csv: 'a,"b' }, "FORMATTER_CSV_INVALID"),
    of({ csv: "x".repeat(150_001) }, "FORMATTER_LIMIT_EXCEEDED"),
    of({ csv: ",".repeat(101) }, "FORMATTER_LIMIT_EXCEEDED"),
    of({ csv: "a\n".repeat(1001) }, "FORMATTER_LIMIT_EXCEEDED", { header: "no" }),
    bad("a", "INPUT_INVALID")
  ]
}
