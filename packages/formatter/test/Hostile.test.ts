import { createRequire } from "node:module"
import { describe, expect, it } from "vitest"
import { refusingFirst } from "../src/engine/Libraries.ts"
import { htmlOf, htmlShapes } from "./HtmlShapes.ts"
import { outcomeOf } from "./Run.ts"

const { LinkifyIt } = createRequire(import.meta.url)("linkify-it") as typeof import("linkify-it")

/**
 * What is made to cost more than it weighs. Each of these once took seconds in a library, or would without its bound; what they take is
 * measured by the benchmarks, and here only that they come to an end: a fault in a bound takes minutes and not moments.
 */

const fill = (piece: string, length: number): string => piece.repeat(Math.ceil(length / piece.length)).slice(0, length)
/** Of the processor: others of the machine do not lengthen it. */
const clock = () => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1_000
}
const most = 5000

const attempts: ReadonlyArray<readonly [operation: string, inputs: object, options?: object]> = [
  ...[
    "(a?){100}[^a]",
    "(?:a{0,30}){0,30}[^a]",
    "(.*)(.*)(.*)(.*)[^a]",
    "(a+)+$",
    "(?:a[^b]*b|a)",
    "([a-z]{1,50}){10}[^a-z]"
  ].map((pattern) => ["text.replace_pattern", { input: fill("a", 21_000), pattern, replace: "x" }] as const),
  // A word whose last letter alone is small.
  ...["A", "A.", "-", "A-", "'"].map((piece) => ["text.titlecase", { input: `a ${fill(piece, 60_000)}a` }] as const),
  // What takes long to compile.
  ...[
    `(?i)[${"b-\u{10ffff}".repeat(120)}]`,
    `(${"[\\pL]".repeat(80)}){900}`,
    `(((${"\\pL".repeat(30)}){9}){9}){9}`
  ].map((pattern) => ["text.extract_pattern", { input: "a", pattern }] as const),
  ...["(a?){100}[^a]", "(?:a[^b]*b|a)"].map(
    (pattern) => ["text.extract_pattern", { input: fill("a", 21_000), pattern }, { which: "all" }] as const
  ),
  ...[
    "<div>",
    "<b>",
    "<ul><li>",
    "<a href=x>",
    "<p><b a=1>",
    "<table><tr><td>",
    "</p>",
    "<!--",
    "<b>x</b> ",
    "&amp;",
    "<i><p>",
    "<blockquote>"
  ].flatMap((piece) => [
    ["text.html_to_markdown", { input: fill(piece, 4096) }] as const,
    ["text.html_to_markdown", { input: fill(piece, 131_072) }] as const,
    ["text.strip_html", { input: fill(piece, 131_072) }] as const
  ]),
  ["text.html_to_markdown", { input: `${"<b>".repeat(100)}${fill("x ", 3500)}` }],
  ["text.html_to_markdown", { input: `<pre><code>${fill("\n", 4000)}x` }],
  ["text.html_to_markdown", { input: `<pre><code>${fill(" \n", 4000)}x` }],
  ["text.html_to_markdown", { input: `<pre><code>${fill(" \n", 131_000)}x` }],
  ["text.html_to_markdown", { input: `<pre>${fill("&#32;", 131_000)}x` }],
  ["text.html_to_markdown", { input: `${"<b>".repeat(24)}${fill("x *y ", 131_000)}` }],
  ["text.html_to_markdown", { input: `${"<ul><li>".repeat(50)}${fill("x<br>", 3500)}` }],
  ...["[", "![", "*a **", "> ", "- ", "`", "[a](", "[a][", "|a|b\n|-|-\n", "<", "*_", "  - a\n", "a**b_"].map(
    (piece) => ["text.markdown_to_html", { input: fill(piece, 8192) }, { linkify: true }] as const
  ),
  ...["# a\n\n", "[a]: b\n\n", "[a][b]\n\n", "word ", "***\n\n", "~~~\nx\n~~~\n\n"].map(
    (piece) => ["text.markdown_to_html", { input: fill(piece, 131_072) }, { linkify: true }] as const
  ),
  ...["1", "800-555-1212 ", "(800) ", "+1 ", "1 ", "ext. 1 "].map(
    (piece) => ["text.extract_phone", { input: fill(piece, 8192) }, { which: "all" }] as const
  ),
  ["text.extract_phone", { input: fill("800-555-1212\n", 131_072) }, { which: "last" }],
  ...["2 days and ", "3 hours 4 minutes ", "monday ", "12:00 ", "jan ", "1/"].map(
    (piece) => ["date.format", { input: fill(piece, 512) }, { to_format: "YYYY" }] as const
  ),
  ...["http://", "a@b.c ", "www.a.com", "//", "http://a("].map(
    (piece) => ["text.extract_url", { input: fill(piece, 40_000) }, { which: "all" }] as const
  ),
  ...["@", "a@", "a@b.", "a".repeat(100) + "@"].map(
    (piece) => ["text.extract_email", { input: fill(piece, 131_072) }, { which: "all" }] as const
  ),
  ["utility.import_csv", { csv: fill(",", 150_000) }],
  ["utility.import_csv", { csv: fill('"', 150_000) }],
  ["utility.import_csv", { csv: fill('""', 149_999) }],
  [
    "utility.import_csv",
    {
      csv: `${Array.from({ length: 100 }, (_, at) => fill(`h${at}`, 900)).join(",")}\n${fill(`${",".repeat(99)}\n`, 50_000)}`
    }
  ],
  ["number.formula", { formula: "(".repeat(2000) }],
  ["number.formula", { formula: `${"-".repeat(400)}1` }],
  [
    "number.formula",
    { formula: Array.from({ length: 240 }, () => "UPPER(x)").join("&"), variables: { x: fill("x", 100_000) } }
  ],
  ["number.formula", { formula: Array.from({ length: 240 }, () => "9^1000").join("*") }],
  ["number.formula", { formula: Array.from({ length: 90 }, () => "FACT(170)").join("*") }],
  ["number.formula", { formula: 'REPT("x",1e8)' }],
  ["text.replace", { input: fill("a", 131_000), find: "a", replace: fill("b", 1000) }],
  ["text.split_chunks", { input: fill("a", 131_000), chunk_size: 20_000, overlap: 19_999 }],
  ["text.split_chunks", { input: fill("a", 131_000), chunk_size: 19_999, overlap: 100 }, { boundary: "sentence" }],
  ["text.strip_html", { input: `${fill("\n", 131_000)}x` }, { keep_line_breaks: true }],
  ["text.strip_html", { input: fill("<p>x", 131_072) }, { keep_line_breaks: true }],
  ["text.replace_pattern", { input: fill("a", 21_000), pattern: "a+", replace: fill("$0", 131_072) }],
  ["date.format", { input: "1".repeat(39) }, { from_format: "HD".repeat(13), to_format: "YYYY" }],
  ["date.format", { input: "1".repeat(200) }, { from_format: "HD".repeat(60), to_format: "YYYY" }],
  ["date.format", { input: `1${" ".repeat(400)}1x` }, { from_format: `D${"[ ]".repeat(40)}D`, to_format: "YYYY" }],
  ["date.format", { input: "a".repeat(500) }, { from_format: "MMM[a]".repeat(20), to_format: "YYYY" }],
  ["text.to_ascii", { input: fill("中", 43_000) }],
  ["text.extract_number", { input: fill("1,", 131_072) }, { which: "all" }],
  ["date.add_subtract", { input: "2026-01-01", expression: "+999999999 business_days" }],
  ["date.add_subtract", { input: "2026-01-01", expression: fill("1d", 131_000) }],
  ["text.trim", { input: fill(" ", 131_072) }, { collapse_inner: true }],
  ["text.trim", { input: `${fill(" \t", 131_000)}x` }, { collapse_inner: true }],
  ["text.titlecase", { input: fill("a: ", 131_072) }],
  ["text.capitalize", { input: fill("!", 131_072) }],
  ["text.url_decode", { input: fill("%41", 131_072) }]
]

describe("Hostile formatter input", () => {
  it.each(
    attempts.map(
      ([operation, inputs, options = {}]) => [operation, JSON.stringify(inputs).slice(0, 60), inputs, options] as const
    )
  )("Formatter operation %s ends within its time limit for the hostile input %s", (operation, _, inputs, options) => {
    const begun = clock()
    const outcome = outcomeOf(operation, inputs as Record<string, unknown>, options as Record<string, unknown>, {
      clock
    })
    expect(clock() - begun).toBeLessThan(most)
    expect(outcome).not.toEqual({ failed: "FORMATTER_INPUT_INVALID" })
  })

  it.each([
    // Each of these would hold everybody for longer than one element may.
    ["text.extract_phone", fill("1 1", 8192), { which: "all" }, "FORMATTER_LIMIT_EXCEEDED"],
    ["text.extract_phone", fill("(.１1/0 x9", 8192), { which: "all" }, "FORMATTER_LIMIT_EXCEEDED"],
    ["text.markdown_to_html", fill(" a@ba.a中.a", 50_000), { linkify: true }, "FORMATTER_TIMEOUT"]
  ])("Formatter operation %s refuses the expensive input %j", (operation, input, options, failed) => {
    expect(outcomeOf(operation, { input }, options)).toEqual({ failed })
  })

  it("Formatter accepts ordinary input that resembles hostile input", () => {
    const phones = outcomeOf("text.extract_phone", { input: fill("order 123 qty 5 price 12.50 ", 8192) })
    expect(phones.output).toEqual({ result: "" })
    const addresses = outcomeOf(
      "text.markdown_to_html",
      { input: fill("ada@example.com, ", 30_000) },
      { linkify: true }
    )
    expect(addresses.output?.["result"]).toContain("mailto:ada@example.com")
    const escapes = outcomeOf("text.html_to_markdown", { input: fill("Ada &amp; Co, &lt;x&gt; ", 60_000) })
    expect(escapes.output?.["result"]).toContain("Ada & Co, \\<x>")
  })

  it.each(Object.entries(htmlShapes))(
    "HTML of 128 KiB becomes Markdown within one second of processor time: %s",
    (_, shape) => {
      const input = htmlOf(shape, 131_072)
      const begun = clock()
      const { output } = outcomeOf("text.html_to_markdown", { input }, {}, { clock })
      expect(clock() - begun).toBeLessThan(1000)
      expect(output?.["result"]).toBeTypeOf("string")
    }
  )

  it("Link search does not read an address to its end when the text before it rules it out", () => {
    const plain = new LinkifyIt({ fuzzyLink: true })
    const ours = refusingFirst(new LinkifyIt({ fuzzyLink: true }))
    const address = ours.re.get_relative_proto_validator()
    const exec = address.exec.bind(address)
    let read = 0
    address.exec = (text) => {
      read++
      return exec(text)
    }
    const refused = fill("127.0.0.1com///", 3000)
    expect(ours.match(refused)).toEqual(plain.match(refused))
    expect(read).toBe(0)
    const taken = "(//a.com/b) x://a.com/b c//a.com/b"
    expect(ours.match(taken)).toEqual(plain.match(taken))
    expect(read).toBeGreaterThan(0)
  })
})
