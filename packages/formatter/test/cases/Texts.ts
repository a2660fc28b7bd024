import { bad, type Case, type Cases, one } from "../Run.ts"

const of = (
  inputs: Case["inputs"],
  output: Case["output"],
  options: Case["options"] = {},
  warnings: Case["warnings"] = []
): Case => ({
  inputs,
  output,
  options,
  warnings
})

const isEmpty = ["INPUT_EMPTY"]
const coerced = ["INPUT_COERCED"]
const noMatch = ["NO_MATCH"]
const match = (text: string, start: number, groups: object, named: object = {}) => ({
  matched: true,
  start,
  end: start + Array.from(text).length,
  groups: { "0": text, ...groups },
  named
})
const nothing = { matched: false, start: null, end: null, groups: {}, named: {} }

/** What all operations of one text do with what is none. */
const ofText: ReadonlyArray<Case> = [
  bad(null, "INPUT_REQUIRED"),
  bad({ a: 1 }, "INPUT_INVALID"),
  bad([["a"]], "LINE_ITEMS_NOT_SUPPORTED"),
  bad("x".repeat(131_073), "LIMIT_EXCEEDED")
]

export const texts: Cases = {
  "text.capitalize": [
    ...ofText,
    one("ORIGIN OF 34", "Origin Of 34"),
    one("hello  world", "Hello  World"),
    one("", "", {}, {}, isEmpty),
    one("o'brien", "O'brien"),
    one("istanbul", "İstanbul", {}, { locale: "tr" }),
    one("(hello)", "(Hello)"),
    one(["ab", null], ["Ab", ""], {}, {}, isEmpty),
    one("42nd street", "42Nd Street"),
    bad("a", "LOCALE_UNKNOWN", {}, { locale: "zz" })
  ],
  "text.lowercase": [
    ...ofText,
    one("ABC", "abc"),
    one("ÄÖÜ", "äöü"),
    one("I", "ı", {}, { locale: "tr_TR" }),
    one("", "", {}, {}, isEmpty),
    one(12, "12", {}, {}, coerced),
    one(true, "true", {}, {}, coerced),
    one(["A", "B"], ["a", "b"]),
    one("\ud800A", "\ufffda"),
    one([], [])
  ],
  "text.uppercase": [
    ...ofText,
    one("abc", "ABC"),
    one("straße", "STRASSE"),
    one("i", "İ", {}, { locale: "tr" }),
    one("", "", {}, {}, isEmpty),
    one("ñandú", "ÑANDÚ"),
    one(["a", "", "c"], ["A", "", "C"], {}, {}, isEmpty),
    one(1.5, "1.5", {}, {}, coerced),
    one("👋 hi", "👋 HI"),
    bad("a", "CONFIG_INVALID", {}, { color: "red" })
  ],
  "text.titlecase": [
    ...ofText,
    one("the lord of the rings", "The Lord of the Rings"),
    one("a tale of two cities", "A Tale of Two Cities"),
    one("what is it for", "What Is It For"),
    one("effect: a guide", "Effect: A Guide"),
    one("my iPhone and me", "My iPhone and Me"),
    one("see https://example.com/a now", "See https://example.com/a Now"),
    one("the lord of the rings", "The Lord Of The Rings", {}, { style: "all_words" }),
    one("DOGS AND CATS", "Dogs and Cats"),
    one("", "", {}, {}, isEmpty),
    bad("a", "CONFIG_INVALID", {}, { style: "german" })
  ],
  "text.trim": [
    ...ofText,
    // A space of no width is none of Unicode's white space, and U+0085 is, wherever it stands.
    one("\u0085a\u200b", "a\u200b"),
    one("\u180ea\u0085\u0085b", "\u180ea b", {}, { collapse_inner: true }),
    one("  a  ", "a"),
    one("\ufeff\ta\u00a0\n", "a"),
    one("  a ", "a ", {}, { side: "start" }),
    one("  a ", "  a", {}, { side: "end" }),
    one(" a \n b ", "a b", {}, { collapse_inner: true }),
    one("  a  b  ", "  a b", {}, { side: "end", collapse_inner: true }),
    one("", "", {}, {}, isEmpty),
    one("   ", ""),
    one([" a", "b "], ["a", "b"]),
    bad("a", "CONFIG_INVALID", {}, { side: "middle" })
  ],
  "text.replace": [
    ...ofText,
    one("a-b-c", "a b c", { find: "-", replace: " " }),
    one("a-b-c", "a b-c", { find: "-", replace: " " }, { occurrences: "first" }),
    one("a-b-c", "a-b c", { find: "-", replace: " " }, { occurrences: "last" }),
    one("abc", "abc", { find: "", replace: "x" }),
    one("aAa", "xxx", { find: "a", replace: "x" }, { case_sensitive: false }),
    one("aa", "aaaa", { find: "a", replace: "aa" }),
    one("a.b", "a!b", { find: ".", replace: "!" }),
    one("a b\tc", "a_b\tc", { find: "[:space:]", replace: "_" }),
    one("a,b", "a\nb", { find: ",", replace: "[:newline:]" }),
    one("a", "a", { find: "z" }, {}, noMatch),
    one("İa", "İx", { find: "A", replace: "x" }, { case_sensitive: false }),
    one("$1", "$&", { find: "$1", replace: "$&" }),
    bad("a".repeat(100_000), "OUTPUT_TOO_LARGE", { find: "a", replace: "bbbbbbbbbb" }),
    bad("a", "INPUT_REQUIRED")
  ],
  "text.replace_pattern": [
    one("a", "b", { pattern: `a${"|😀".repeat(255)}`, replace: "b" }),
    bad("a", "LIMIT_EXCEEDED", { pattern: `aa${"|😀".repeat(256)}` }),
    ...ofText.slice(0, 2),
    one("2026-01-31", "31.01.2026", { pattern: "(\\d+)-(\\d+)-(\\d+)", replace: "$3.$2.$1" }),
    one("ada lovelace", "lovelace, ada", { pattern: "(?P<first>\\w+) (?P<last>\\w+)", replace: "${last}, ${first}" }),
    one("aXbX", "a-bX", { pattern: "X", replace: "-" }, { occurrences: "first" }),
    one("AbA", "xbx", { pattern: "a", replace: "x" }, { ignore_case: true }),
    one("a\nb", "-\n-", { pattern: "^.$", replace: "-" }, { multi_line: true }),
    one("a\nb", "-", { pattern: "a.b", replace: "-" }, { dot_all: true }),
    one("abc", "-a-b-c-", { pattern: "", replace: "-" }),
    one("5", "$5$", { pattern: "(\\d)", replace: "$$$1$$" }),
    one("a", "", { pattern: "a", replace: "$9${x}" }),
    one("a", "a", { pattern: "z", replace: "" }, {}, noMatch),
    bad("a", "PATTERN_INVALID", { pattern: "(" }),
    bad("a", "PATTERN_INVALID", { pattern: "(?=a)" }),
    bad("a", "PATTERN_INVALID", { pattern: "(a)\\1" }),
    bad("a", "LIMIT_EXCEEDED", { pattern: "a".repeat(513) })
  ],
  "text.split": [
    one("\u0085a\u0085b", "b", {}, { index: "last" }),
    one("a1b", "b", { separator: 1 }, { index: "last" }, coerced),
    one("a😀b", "a😀b", { separator: "😀".repeat(256) }, { index: "last" }),
    ...ofText.slice(0, 3),
    one("a:b", "b", { separator: ":" }, { index: -1 }),
    one(`${"a ".repeat(1500)}b `, "b", {}, { index: -1 }),
    bad("a", "LIMIT_EXCEEDED", { separator: "b".repeat(257) }),
    one("hello  world", "", { separator: "[:s:]" }, { index: 1 }),
    one("b", "b", { separator: "," }, { index: 0 }),
    one("a b\tc", "b", {}, { index: "second" }),
    one("a,b,c", "b", { separator: "," }, { index: "second_last" }),
    one("a,b,", ["a", "b", ""], { separator: "," }, { index: "all" }),
    of({ input: "a,b", separator: "," }, { item_1: "a", item_2: "b" }, { index: "fields" }),
    one("a", "", { separator: "," }, { index: 3 }, noMatch),
    one("", "", { separator: "," }, { index: "last" }, isEmpty),
    bad("a", "CONFIG_INVALID", {}, { index: "third" }),
    bad(["a"], "LINE_ITEMS_NOT_SUPPORTED", { separator: "," }, { index: "all" }),
    bad(",".repeat(1001), "LIMIT_EXCEEDED", { separator: "," }, { index: "all" }),
    one(",".repeat(2000) + "z", "z", { separator: "," }, { index: "last" })
  ],
  "text.split_chunks": [
    of({ input: "one two three four", chunk_size: 9 }, { items: ["one two", "three", "four"], count: 3 }),
    of({ input: "abcdef", chunk_size: 4 }, { items: ["abcd", "ef"], count: 2 }),
    of({ input: "abcdef", chunk_size: 4, overlap: 2 }, { items: ["abcd", "cdef"], count: 2 }, { boundary: "none" }),
    of({ input: "a b c d e", chunk_size: 2 }, { items: ["a b", "c d", "e"], count: 3 }, { unit: "words" }),
    of(
      { input: "One. Two two. Three.", chunk_size: 14 },
      { items: ["One. Two two.", "Three."], count: 2 },
      { boundary: "sentence" }
    ),
    of({ input: "", chunk_size: 5 }, { items: [], count: 0 }),
    of({ input: "👋👋👋", chunk_size: 2 }, { items: ["👋👋", "👋"], count: 2 }, { boundary: "none" }),
    of({ input: "a", chunk_size: 0 }, "FORMATTER_INPUT_INVALID"),
    of({ input: "a", chunk_size: 20_001 }, "FORMATTER_INPUT_INVALID"),
    of({ input: "a" }, "FORMATTER_INPUT_REQUIRED"),
    of({ input: "a", chunk_size: 5, overlap: 5 }, "FORMATTER_CONFIG_INVALID"),
    of({ input: ["a"], chunk_size: 5 }, "FORMATTER_LINE_ITEMS_NOT_SUPPORTED"),
    of({ input: "a".repeat(1001), chunk_size: 1 }, "FORMATTER_LIMIT_EXCEEDED", { boundary: "none" })
  ],
  "text.length": [
    one("abc", 3),
    one("", 0),
    one("👋", 1),
    one("e\u0301", 2),
    one(null, 0),
    one(12, 2, {}, {}, coerced),
    one("a\u0085\ufeff b", 2, {}, { ignore_whitespace: true }),
    one("a b", 2, {}, { ignore_whitespace: true }),
    one(["a", "bb"], [1, 2]),
    one([null], [0]),
    one("\ud800", 1),
    one("日本", 2),
    bad({ a: 1 }, "INPUT_INVALID")
  ],
  "text.word_count": [
    one("to be or not", 4),
    one("New Line Test\nsecond line \nthird line", 7),
    one("", 0),
    one("   ", 0),
    one(null, 0),
    one("a\u00a0b", 2),
    one("one", 1),
    one(" lead and trail ", 3),
    one(["a b", "c"], [2, 1]),
    one(42, 1, {}, {}, coerced),
    one("a\u0085b\u200bc", 2),
    one("a—b", 1),
    bad([["a"]], "LINE_ITEMS_NOT_SUPPORTED")
  ],
  "text.default_value": [
    one(["", null], ["d", "d"], { default_value: "d" }),
    bad(
      Array.from({ length: 1001 }, () => ""),
      "LIMIT_EXCEEDED",
      { default_value: "d" }
    ),
    one([], ["d"], { default_value: "d" }),
    one(0, 0, { default_value: "d" }),
    one(false, false, { default_value: "d" }),
    one("", "d", { default_value: "d" }),
    one(null, "d", { default_value: "d" }),
    of({ default_value: "d" }, { result: "d" }),
    one("a", "a", { default_value: "d" }),
    one({ a: 1 }, { a: 1 }, { default_value: "d" }),
    one(["a", "", 0], ["a", "d", 0], { default_value: "d" }),
    one(" ", " ", { default_value: "d" }),
    one("", " ", { default_value: "[:s:]" }),
    bad("a", "INPUT_REQUIRED")
  ],
  "text.find": [
    bad(["ab"], "INPUT_REQUIRED"),
    ...ofText.slice(0, 3),
    one("aa", 1, { find: "a", offset: 1 }),
    one("", -1, { find: "" }, {}, isEmpty),
    one("abc", -1, { find: "" }),
    one("Ada Lovelace", 4, { find: "Love" }),
    one("abc", -1, { find: "z" }),
    one("abc", 0, { find: "A" }, { case_sensitive: false }),
    one("👋a", 1, { find: "a" }),
    one("abcabc", 3, { find: "a", offset: -3 }),
    bad("abc", "INPUT_INVALID", { find: "a", offset: 1.5 }),
    one("abc", -1, { find: "a", offset: 99 }),
    one(["ab", "b"], [1, 0], { find: "b" }),
    one("a\tb", 1, { find: "[:t:]" })
  ],
  "text.truncate": [
    // A number that is not there is none, as a text or for each element of a list.
    bad("abc", "INPUT_REQUIRED", { max_length: "" }),
    bad(["abc"], "INPUT_REQUIRED"),
    bad(["abc"], "INPUT_REQUIRED", { max_length: null }),
    ...ofText.slice(0, 2),
    one("abcdef", "abcdef", { max_length: 6 }, { append_ellipsis: true }),
    one("abcdefg", "abc...", { max_length: 6 }, { append_ellipsis: true }),
    one("abcde", "de", { max_length: 10, offset: -2 }),
    one("abcde", "abcde", { max_length: "1,000" }),
    one("abcde", "ab", { max_length: " 2 " }),
    bad("abcde", "INPUT_INVALID", { max_length: "0x10" }),
    one("abc", "..", { max_length: 2 }, { append_ellipsis: true }),
    one("abc", "", { max_length: 0 }, { append_ellipsis: true }),
    one("abcdef", "cd", { max_length: 2, offset: 2 }),
    one("👋👋👋", "👋👋", { max_length: 2 }),
    one("", "", { max_length: 2 }, {}, isEmpty),
    one("abc", "", { max_length: 2, offset: 9 }),
    one("abcde", "ab", { max_length: "2" }),
    bad("a", "INPUT_INVALID", { max_length: -1 }),
    bad("a", "INPUT_REQUIRED")
  ],
  "text.extract_email": [
    ...ofText.slice(0, 2),
    one("Write to ada@example.com.", "ada@example.com"),
    one("a@b.co, c@d.org", "c@d.org", {}, { which: "last" }),
    one("a@b.co, c@d.org", ["a@b.co", "c@d.org"], {}, { which: "all" }),
    one("nobody here", "", {}, {}, noMatch),
    one("nobody", [], {}, { which: "all" }, noMatch),
    one("<first.last+tag@mail.example.co.uk>", "first.last+tag@mail.example.co.uk"),
    one("me@localhost", "", {}, {}, noMatch),
    one("a@@b.com", "", {}, {}, noMatch),
    one(["a@b.co", null], ["a@b.co", ""], {}, {}, [...isEmpty, ...noMatch]),
    one("'ada@example.com'", "ada@example.com"),
    bad(["a@b.co"], "LINE_ITEMS_NOT_SUPPORTED", {}, { which: "all" })
  ],
  "text.extract_number": [
    ...ofText.slice(0, 2),
    one("I have 3,124 dogs", "3,124"),
    one("five+5", "+5"),
    one("it is 5.", "5"),
    one("-1.5 and 2", "-1.5"),
    one("1, 2, 3", "3", {}, { which: "last" }),
    one("1, 2, 3", ["1", "2", "3"], {}, { which: "all" }),
    one("costs 1.234,50 EUR", 1234.5, {}, { as: "number", decimal_mark: "," }),
    one("3,124", 3124, {}, { as: "number" }),
    one("none", "", {}, {}, noMatch),
    one("99999999999999999999", "99999999999999999999", {}, { as: "number" }, ["NUMBER_AS_TEXT"]),
    one(".5", ".5"),
    bad(["1"], "LINE_ITEMS_NOT_SUPPORTED", {}, { which: "all" })
  ],
  "text.extract_phone": [
    ...ofText.slice(0, 2),
    one("Call (800) 555-1212 today", "(800) 555-1212"),
    one("Call (800) 555-1212 today", "+18005551212", {}, { output: "e164" }),
    one("+49 30 901820", "+49 30 901820", {}, { format: "international" }),
    one("800-555-1212", "", {}, { format: "international" }, noMatch),
    one("030 901820", "+4930901820", {}, { region: "DE", output: "e164" }),
    one("+49 30 901820 or 800-555-1212", "800-555-1212", {}, { format: "north_america" }),
    one("800-555-1212 or 888-234-5678", ["800-555-1212", "888-234-5678"], {}, { which: "all" }),
    one("no number", "", {}, {}, noMatch),
    one(["800-555-1212"], ["800-555-1212"]),
    bad("1".repeat(8193), "LIMIT_EXCEEDED"),
    bad("a", "CONFIG_INVALID", {}, { region: "usa" })
  ],
  "text.extract_url": [
    ...ofText.slice(0, 2),
    one("See www.example.com/a.", "www.example.com/a"),
    one("(https://example.com/a_(b))", "https://example.com/a_(b)"),
    one("https://a.com and http://b.com", "http://b.com", {}, { which: "last" }),
    one("https://a.com and http://b.com", ["https://a.com", "http://b.com"], {}, { which: "all" }),
    one("mail ada@example.com", "", {}, {}, noMatch),
    one("ada@example.com or example.org", "example.org"),
    one("nothing", "", {}, {}, noMatch),
    one("https://example.com/?a=1&b=2#c", "https://example.com/?a=1&b=2#c"),
    one(["https://a.com", ""], ["https://a.com", ""], {}, {}, [...isEmpty, ...noMatch]),
    bad(["https://a.com"], "LINE_ITEMS_NOT_SUPPORTED", {}, { which: "all" }),
    bad("a".repeat(40_001), "LIMIT_EXCEEDED")
  ],
  "text.extract_pattern": [
    of(
      { input: "foo folks", pattern: "f(o+)( b(?P<n>a+)r)?" },
      match("foo", 0, { "1": "oo", "2": null, "3": null }, { n: null })
    ),
    of({ input: "Order A-17", pattern: "([A-Z])-(\\d+)" }, match("A-17", 6, { "1": "A", "2": "17" })),
    of({ input: "abc", pattern: "z" }, nothing, {}, noMatch),
    of({ input: "a1b2", pattern: "\\d" }, match("2", 3, {}), { which: "last" }),
    of({ input: "1".repeat(1001), pattern: "1" }, match("1", 1000, {}), { which: "last" }),
    of(
      { input: "1".repeat(1001), pattern: "1" },
      { ...match("1", 0, {}), matches: Array.from({ length: 1000 }, (_, at) => match("1", at, {})) },
      { which: "all" },
      ["OUTPUT_CAPPED"]
    ),
    of(
      { input: "a1b2", pattern: "\\d" },
      { ...match("1", 1, {}), matches: [match("1", 1, {}), match("2", 3, {})] },
      { which: "all" }
    ),
    of({ input: "ABC", pattern: "b" }, match("B", 1, {}), { ignore_case: true }),
    of({ input: "a\nb", pattern: "^b" }, match("b", 2, {}), { multi_line: true }),
    of({ input: "👋a", pattern: "a" }, match("a", 1, {})),
    of({ input: "", pattern: "a" }, nothing, {}, isEmpty),
    of({ input: "a", pattern: "a(?!b)" }, "FORMATTER_PATTERN_INVALID"),
    of({ input: "a" }, "FORMATTER_INPUT_REQUIRED"),
    of({ input: ["a"], pattern: "a" }, "FORMATTER_LINE_ITEMS_NOT_SUPPORTED", { which: "all" }),
    of({ input: "a".repeat(65_537), pattern: "a" }, "FORMATTER_LIMIT_EXCEEDED")
  ],
  "text.url_encode": [
    ...ofText,
    one("user+test@example.com", "user%2Btest%40example.com"),
    one(" ", "+", {}, { use_plus: true }),
    one(" ", "%20"),
    one("a/b", "a/b"),
    one("a/b", "a%2Fb", {}, { keep_slash: false }),
    one("a/b", "a%2Fb", {}, { use_plus: true }),
    one("a b/c", "a+b/c", {}, { use_plus: true, keep_slash: true }),
    one("!*'()", "%21%2A%27%28%29"),
    one("AZaz09-_.~", "AZaz09-_.~"),
    one("é👋", "%C3%A9%F0%9F%91%8B"),
    one("\ud800", "%EF%BF%BD")
  ],
  "text.url_decode": [
    ...ofText,
    one("a%20b", "a b"),
    one("a+b", "a+b"),
    one("a+b", "a b", {}, { use_plus: true }),
    one("100%", "100%", {}, {}, ["MALFORMED_ESCAPE"]),
    one("%zz%41", "%zzA", {}, {}, ["MALFORMED_ESCAPE"]),
    one("%C3%A9", "é"),
    one("%ff", "\ufffd"),
    one("%2B", "+", {}, { use_plus: true }),
    one("", "", {}, {}, isEmpty),
    one(["%41", "b"], ["A", "b"])
  ],
  "text.strip_html": [
    ...ofText.slice(0, 2),
    one("<p>Ada &amp; Co</p>", "Ada & Co"),
    one("I ate < 3 donuts", "I ate < 3 donuts"),
    one("a<script>alert(1)</script>b", "ab"),
    one("<style>p{}</style>x", "x"),
    one("a<!-- no -->b", "ab"),
    one("<p>a</p><p>b</p>", "a\nb", {}, { keep_line_breaks: true }),
    one("a<br>b", "a\nb", {}, { keep_line_breaks: true }),
    one("<b>bold</b>", "bold"),
    one("", "", {}, {}, isEmpty),
    one("&lt;b&gt; &copy; &#x41;", "<b> © A"),
    bad("<div>".repeat(101), "LIMIT_EXCEEDED")
  ],
  "text.markdown_to_html": [
    ...ofText.slice(0, 2),
    one("# Hello *you*", "<h1>Hello <em>you</em></h1>\n"),
    one("**a**", "<p><strong>a</strong></p>\n"),
    one("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>\n"),
    one("[a](javascript:alert(1))", "<p>[a](javascript:alert(1))</p>\n", {}, {}, ["LINK_SCHEME_REMOVED"]),
    one("[a](https://example.com)", '<p><a href="https://example.com">a</a></p>\n'),
    one("a\nb", "<p>a<br>\nb</p>\n", {}, { breaks: true }),
    one("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"),
    one("`a<b`", "<p><code>a&lt;b</code></p>\n"),
    one("https://example.com", '<p><a href="https://example.com">https://example.com</a></p>\n', {}, { linkify: true }),
    one(
      "|a|b|\n|-|-|\n|1|2|",
      "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table>\n"
    ),
    bad("[".repeat(8193), "LIMIT_EXCEEDED")
  ],
  "text.html_to_markdown": [
    ...ofText.slice(0, 2),
    one("<h1>Hello <em>you</em></h1>", "# Hello _you_"),
    one("<h1>Hello</h1>", "Hello\n=====", {}, { heading_style: "setext" }),
    one("<b>a</b> and <i>b</i>", "**a** and _b_"),
    one('<a href="https://example.com">x</a>', "[x](https://example.com)"),
    one('<a href="javascript:alert(1)">x</a>', "x", {}, {}, ["LINK_SCHEME_REMOVED"]),
    one("<ul><li>a</li><li>b</li></ul>", "*   a\n*   b", {}, { bullet: "*" }),
    one("<p>a</p><script>x</script><p>b</p>", "a\n\nb"),
    one("<custom>text</custom>", "text"),
    one("a<br>b", "a  \nb"),
    one(
      "&lt;script&gt;x&lt;/script&gt; &amp;lt;b&amp;gt; 1 &lt; 2 &amp; 3",
      "\\<script>x\\</script> \\&lt;b\\&gt; 1 < 2 & 3"
    ),
    one("<code>&lt;b&gt; &amp;amp;</code>", "`<b> &amp;`"),
    one("<pre><code>&lt;b&gt;\n# x</code></pre>", "```\n<b>\n# x\n```"),
    one('<img src="a)" alt="&lt;b title=&quot;"> "&gt;', '![\\<b title="](a\\)) ">'),
    one('<a href="a`\\">x</a>', "[x](a%60%5C)"),
    one("<p>1) a<br># b<br>|-|<br>+ c</p>", "1\\) a  \n\\# b  \n\\|-|  \n\\+ c"),
    one("", "", {}, {}, isEmpty),
    bad("<div>".repeat(101), "LIMIT_EXCEEDED")
  ],
  "text.pluralize": [
    one("child", "children"),
    one("deer", "deer"),
    one("cat", "cats"),
    one("cats", "cat", { count: 1 }),
    one("cat", "3 cats", { count: 3 }, { include_count: true }),
    one("city", "cities"),
    one("Person", "People"),
    one("cat", "cats", { count: 0 }),
    one("cat", "1 cat", { count: "1" }, { include_count: true }),
    one("", "", {}, {}, isEmpty),
    one(["mouse", "box"], ["mice", "boxes"]),
    bad("a".repeat(201), "LIMIT_EXCEEDED"),
    bad("a", "INPUT_INVALID", { count: "many" })
  ],
  "text.to_ascii": [
    ...ofText.slice(0, 3),
    one("Ærøskøbing", "Aeroskobing"),
    one("é", "e"),
    one("Москва", "Moskva"),
    one("abc", "abc"),
    one("“quoted”", '"quoted"'),
    one("", "", {}, {}, isEmpty),
    one("Straße", "Strasse"),
    one(["ñ"], ["n"]),
    one("東京", "DongJing"),
    bad("é".repeat(65_537), "LIMIT_EXCEEDED")
  ],
  "text.slugify": [
    ...ofText.slice(0, 3),
    one("Crème brûlée, twice!", "creme-brulee-twice"),
    one("Hello World", "hello_world", {}, { separator: "_" }),
    one("  -- ", ""),
    one("one two three", "one-two", {}, { max_length: 8 }),
    one("a", "a"),
    one("", "", {}, {}, isEmpty),
    one("Über 9000", "uber-9000"),
    one(["A B", "C"], ["a-b", "c"]),
    bad("a", "CONFIG_INVALID", {}, { max_length: 0 }),
    bad("a", "CONFIG_INVALID", {}, { separator: "+" })
  ]
}
