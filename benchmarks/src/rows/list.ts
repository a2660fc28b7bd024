/** The rows in the order of the table. To add a row, add an entry. */
import { allRefused, complete, inOrder, limitedTo, p99AtMost, type Row } from "./Row.ts"
import { deduplicate, transform, transformation } from "../Rules.ts"

const loops = transformation("loop", `addHandler("transform", () => { for (;;); })`)
const allocates = transformation(
  "allocate",
  `addHandler("transform", () => { for (const kept = []; ;) kept.push(new Array(100_000).fill(kept.length)) })`
)

/** Three numbers of customers, each a hundred times the last: no parallel deliveries, as many as usual, and almost no waiting. */
const ordered = ([1, 100, 10_000] as const).map((customers): Row => ({
  name: `in order, ${customers.toLocaleString("en-US")} key${customers === 1 ? "" : "s"}`,
  loads: ["saturated", customers === 1 ? 100 : 1_000],
  must: [...complete, inOrder],
  connection: { ordering: { key: "body.customer.id", on_failure: "block" } },
  customers
}))

/** The same with one customer, whose sender waits for each answer: here nothing but the queue of the key limits the rate. */
const waitingInOrder: Row = {
  name: "in order, 1 key, 5,000 events that wait",
  loads: ["waiting"],
  must: [...complete, inOrder],
  connection: { ordering: { key: "body.customer.id", on_failure: "block" } },
  customers: 1,
  waiting: 5_000
}

const processes = [1, 2, 4].map((processes): Row => ({
  name: `${processes} process${processes === 1 ? "" : "es"}, 20 sources`,
  loads: ["saturated", 1_000],
  must: complete,
  sources: 20,
  processes
}))

export const rows: ReadonlyArray<Row> = [
  { name: "plain", loads: ["saturated", 1_000, 300], must: complete },
  { name: "transformed", loads: ["saturated", 300], must: complete, rules: [transform] },
  { name: "deduplicated", loads: ["saturated", 300], must: complete, rules: [deduplicate] },
  { name: "deduplicated and transformed", loads: ["saturated", 300], must: complete, rules: [deduplicate, transform] },
  { name: "target of 200 ms", loads: [1_000], must: [...complete, p99AtMost(400)], answersAfter: 200 },
  { name: "target of 1 s", loads: [500], must: [...complete, p99AtMost(1_500)], answersAfter: 1_000 },
  { name: "1,000 destinations of 200 ms", loads: [2], must: complete, destinations: 1_000, answersAfter: 200 },
  ...ordered,
  waitingInOrder,
  {
    name: "ingest limit of 500/s",
    loads: [1_000],
    must: limitedTo(500),
    source: { config: { rate_limit: 500, rate_limit_period: "second" } },
    isFresh: true
  },
  {
    name: "ingest limit used up",
    loads: [1_000],
    must: [allRefused],
    source: { config: { rate_limit: 1, rate_limit_period: "day" } },
    countsRefusals: true
  },
  { name: "ten sources", loads: ["saturated", 1_000], must: complete, sources: 10 },
  ...processes,
  {
    name: "plain beside code that loops and allocates",
    loads: [300],
    must: complete,
    beside: [
      { perSecond: 2, rules: [loops] },
      { perSecond: 2, rules: [allocates] }
    ]
  }
]
