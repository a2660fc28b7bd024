import { type ControlCase, json } from "./Case.ts"

const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) })

/** Rules that are refused, each the only one of its connection. */
const wrong: ReadonlyArray<unknown> = [
  null,
  "retry",
  1,
  [],
  {},
  { type: null },
  { type: "RETRY" },
  { type: "nonsense" },
  { type: "__proto__" },
  { type: "constructor" },
  // Deduplication.
  { type: "deduplicate" },
  { type: "deduplicate", window: 999 },
  { type: "deduplicate", window: 3_600_001 },
  { type: "deduplicate", window: "5000" },
  { type: "deduplicate", window: 5_000, include_fields: [] },
  { type: "deduplicate", window: 5_000, include_fields: [1] },
  { type: "deduplicate", window: 5_000, include_fields: ["nowhere.id"] },
  { type: "deduplicate", window: 5_000, include_fields: ["body.a"], exclude_fields: ["body.b"] },
  // Delay.
  { type: "delay" },
  { type: "delay", delay: null },
  { type: "delay", delay: -1 },
  { type: "delay", delay: 86_400_001 },
  { type: "delay", delay: 1.5 },
  { type: "delay", delay: "1000" },
  { type: "delay", delay: 1_000, more: 1 },
  // Retry.
  { type: "retry", strategy: "fibonacci" },
  { type: "retry", strategy: null },
  { type: "retry", count: 0 },
  { type: "retry", count: 51 },
  { type: "retry", count: 1.5 },
  { type: "retry", count: "5" },
  { type: "retry", interval: 999 },
  { type: "retry", interval: 604_800_001 },
  { type: "retry", interval: {} },
  { type: "retry", response_status_codes: [] },
  { type: "retry", response_status_codes: "500" },
  { type: "retry", response_status_codes: ["five hundred"] },
  { type: "retry", response_status_codes: ["599-500"] },
  { type: "retry", response_status_codes: ["99"] },
  { type: "retry", response_status_codes: [500.5] },
  { type: "retry", response_status_codes: [null] },
  { type: "retry", response_status_codes: [">"] },
  { type: "retry", response_status_codes: ["!!500"] },
  { type: "retry", response_status_codes: Array.from({ length: 11 }, (_, i) => 500 + i) },
  { type: "retry", delay: 1 },
  // Transformation.
  { type: "transform" },
  { type: "transform", transformation_id: "nonsense" },
  { type: "transform", transformation_id: 1 },
  { type: "transform", transformation: {} },
  { type: "transformation", transformation: { name: "", code: "x" } },
  { type: "transform", transformation_id: "trs_1", transformation: { name: "n", code: "c" } },
  // Filters.
  { type: "filter" },
  { type: "filter", body: null },
  { type: "filter", cookies: {} },
  { type: "filter", body: {}, method: "POST" },
  { type: "filter", body: { $nonsense: 1 } },
  { type: "filter", body: { a: { $gtt: 1 } } },
  { type: "filter", body: { a: { $in: true } } },
  { type: "filter", body: { a: { $nin: {} } } },
  { type: "filter", body: { a: { $exists: "yes" } } },
  { type: "filter", body: { a: { $exist: 1 } } },
  { type: "filter", body: { a: { $gt: [] } } },
  { type: "filter", body: { a: { $lt: null } } },
  { type: "filter", body: { a: { $or: {} } } },
  { type: "filter", body: { $and: "x" } },
  { type: "filter", body: { a: { $startsWith: 1 } } },
  { type: "filter", body: { a: { $endsWith: [1] } } },
  { type: "filter", body: { a: { $ref: 1 } } },
  { type: "filter", body: { a: { $ref: "" } } },
  { type: "filter", body: { a: { $regex: 5 } } },
  { type: "filter", body: { a: { $regex: "(" } } },
  { type: "filter", body: { a: { $regex: "[z-a]" } } },
  { type: "filter", body: { a: { $regex: "a{2,1}" } } },
  { type: "filter", body: { a: { $regex: "*" } } },
  { type: "filter", body: { a: { $regex: "(?=x)" } } },
  { type: "filter", body: { a: { $regex: "(?<!x)y" } } },
  { type: "filter", body: { a: { $regex: String.raw`(a)\1` } } },
  { type: "filter", body: { a: { $regex: "x".repeat(1_025) } } },
  { type: "filter", body: { a: { $regex: "((a{1,1000}){1,1000}){1,1000}" } } },
  { type: "filter", body: nested(11) },
  { type: "filter", body: nested(60) },
  { type: "filter", body: Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`k${i}`, i])) },
  { type: "filter", body: { a: "x".repeat(65_537) } },
  { type: "filter", body: { a: { $in: Array.from({ length: 20_000 }, (_, i) => `value-${i}`) } } },
  { type: "filter", filter_id: "nonsense" },
  { type: "filter", filter_id: "flt_1", body: {} },
  { type: "filter", filter_id: "flt_1", detached_from_filter: { id: "flt_1", name: "a", detached_at: "b" } },
  { type: "filter", body: {}, filter_snapshot: {} }
]

/** Lists of rules that are wrong as a whole. */
const wrongLists: ReadonlyArray<readonly [name: string, rules: unknown]> = [
  [
    "two retry rules",
    [
      { type: "retry", count: 1 },
      { type: "retry", count: 2 }
    ]
  ],
  [
    "two delays",
    [
      { type: "delay", delay: 1 },
      { type: "delay", delay: 2 }
    ]
  ],
  [
    "the second one wrong",
    [
      { type: "delay", delay: 1 },
      { type: "delay", delay: -1 }
    ]
  ],
  ["more than fifty", Array.from({ length: 51 }, () => ({ type: "filter", path: "/" }))]
]

const shown = (rule: unknown): string => {
  const text = JSON.stringify(rule)
  return text.length > 90 ? `${text.slice(0, 90)}… (${text.length})` : text
}

const refused = (name: string, rules: unknown, method: string, path: string, more: object): ControlCase => ({
  name: name,
  method,
  path,
  body: json({ ...more, rules }),
  status: 400,
  code: "RULE_INVALID"
})

const connected = { name: "wrong-rules", source_id: "{source}", destination_id: "{destination}" }

export const wrongRules: ReadonlyArray<ControlCase> = [
  ...wrong.map((rule) => refused(shown(rule), [rule], "POST", "/v1/connections", connected)),
  ...wrongLists.flatMap(([name, rules]) => [
    refused(name, rules, "POST", "/v1/connections", connected),
    refused(name, rules, "PATCH", "/v1/connections/{connection}", {})
  ])
]

/** Patterns that hang an engine that backtracks: taken, because this one takes time linear in the text. */
export const slowPatterns: ReadonlyArray<string> = [
  "(a+)+$",
  "^(a|aa)+$",
  "(.*a){20}$",
  "(x+x+)+y",
  String.raw`^(([a-z])+.)+[A-Z]([a-z])+$`,
  String.raw`(\d+)*(\d+)*(\d+)*$`
]
