import type { FilterInput, FilterTarget } from "@tidegate/rules/Filter"
import type { Json } from "@tidegate/model/Rule"

/**
 * What the filter language says, as data: connection filters, stored filters and the matchers of custom responses are
 * one engine, and these hold for each of them.
 */

/** Condition, document, whether they match. */
export type Vector = readonly [condition: unknown, document: Json, expected: boolean]

const lines = { items: [{ sku: "a" }, { sku: "b" }] }

/** A condition that matches the first value, not the second, and not a key that is missing; for each spelling. */
const each = (names: ReadonlyArray<string>, operand: unknown, yes: Json, no: Json): ReadonlyArray<Vector> =>
  names.flatMap((name): ReadonlyArray<Vector> => [
    [{ a: { [name]: operand } }, { a: yes }, true],
    [{ a: { [name]: operand } }, { a: no }, false],
    [{ a: { [name]: operand } }, {}, false]
  ])

export const vectors: Readonly<Record<string, ReadonlyArray<Vector>>> = {
  "The contract's examples": [
    [{ items: { sku: "b" } }, lines, true],
    [{ items: { sku: "c" } }, lines, false],
    [{ tags: ["x"] }, { tags: ["x", "y"] }, true],
    [{ amount: { $gte: 10, $lt: 20 } }, { amount: 15 }, true],
    [{ amount: { $gte: 10, $lt: 20 } }, { amount: "15" }, true],
    [{ amount: { $gte: 10, $lt: 20 } }, { amount: 20 }, false],
    [{ $or: [{ type: "a" }, { type: "b" }] }, { type: "b" }, true],
    [{ $or: [{ type: "a" }, { type: "b" }] }, { type: "c" }, false],
    [{ a: { $exist: false } }, { a: null }, false],
    [{ a: { $exist: false } }, {}, true],
    [{ a: { $neq: 1 } }, {}, false],
    [{ a: { $or: [{ $lt: 2 }, { $gt: 4 }] } }, { a: 5 }, true],
    [{ a: { $or: [{ $lt: 2 }, { $gt: 4 }] } }, { a: 3 }, false],
    [
      { a: { x: { $gt: { $ref: "a[$index].y" } } } },
      {
        a: [
          { x: 1, y: 1 },
          { x: 2, y: 1 }
        ]
      },
      true
    ],
    [
      { a: { x: { $gt: { $ref: "a[$index].y" } } } },
      {
        a: [
          { x: 1, y: 1 },
          { x: 2, y: 2 }
        ]
      },
      false
    ],
    [{ a: { $eq: { b: 1, c: 2 } } }, { a: { c: 2, b: 1 } }, true]
  ],
  "Structure of conditions": [
    [{}, { a: 1 }, true],
    [{}, "text", true],
    [{ a: 1 }, { a: 1, b: 2 }, true],
    [{ a: { b: 1 } }, { a: { b: 1, c: 2 } }, true],
    [{ a: {} }, { a: 5 }, true],
    [{ a: {} }, {}, false],
    [{ a: null }, { a: null }, true],
    [{ a: null }, {}, false],
    [{ a: { $exist: true } }, { a: null }, true],
    [{ a: { b: { $exist: false } } }, {}, false],
    [{ a: { b: { $exist: false } } }, { a: {} }, true],
    [{ a: [] }, { a: [1] }, true],
    [{ a: [] }, { a: [] }, true],
    [{ a: [] }, { a: 1 }, false],
    [{ a: ["x", "z"] }, { a: ["x", "y"] }, false],
    [{ a: [{ b: 1 }, { b: 2 }] }, { a: [{ b: 2 }, { b: 1 }] }, true],
    [{ a: 1 }, [{ a: 2 }, { a: 1 }], true],
    [{ $or: [] }, { a: 1 }, false],
    [{ $and: [] }, { a: 1 }, true],
    [{ a: 1, $or: [{ b: 1 }, { b: 2 }] }, { a: 1, b: 2 }, true],
    [{ a: 1, $or: [{ b: 1 }, { b: 2 }] }, { a: 2, b: 2 }, false],
    [{ $not: { a: 1 } }, { a: 2 }, true],
    [{ $not: { a: 1 } }, {}, true],
    [{ $not: { a: 1 }, b: 1 }, { a: 2, b: 2 }, false],
    [{ b: { $ref: "a" } }, { a: 1, b: 1 }, true],
    [{ b: { $ref: "a" } }, { b: null }, false],
    [{ b: { $gt: { $ref: "a" } } }, { a: 1, b: 2 }, true],
    [{ b: { $in: { $ref: "a" } } }, { a: ["x", "y"], b: "y" }, true],
    [{ b: { $eq: { $ref: "a" } } }, { a: { x: 1, y: [2] }, b: { y: [2], x: 1 } }, true],
    [{ order: { id: { $ref: 'refs["order id"]' } } }, { refs: { "order id": 7 }, order: { id: 7 } }, true],
    [
      { orders: { items: { got: { $lt: { $ref: "orders[$index].items[$index].due" } } } } },
      {
        orders: [
          { items: [{ got: 1, due: 1 }] },
          {
            items: [
              { got: 1, due: 2 },
              { got: 2, due: 1 }
            ]
          }
        ]
      },
      true
    ],
    // Two conditions on one line of an order, and not on two.
    [
      { items: { sku: "a", qty: 2 } },
      {
        items: [
          { sku: "a", qty: 1 },
          { sku: "b", qty: 2 }
        ]
      },
      false
    ],
    [
      { items: { sku: "b", qty: 2 } },
      {
        items: [
          { sku: "a", qty: 1 },
          { sku: "b", qty: 2 }
        ]
      },
      true
    ]
  ],
  "Missing values, also inside $or and $and of the key": [
    [{ a: { $or: [{ $exist: false }, 1] } }, {}, true],
    [{ a: { $or: [{ $exist: false }, 1] } }, { a: 2 }, false],
    [{ a: { $and: [{ $exist: false }] } }, {}, true],
    [{ a: { $and: [] } }, {}, false],
    [{ a: { $exist: false, $neq: 1 } }, {}, false]
  ],
  "Body that is not JSON, compared as text": [
    ["ping", "ping", true],
    [{ $startsWith: "<xml" }, "<xml/>", true],
    [{ contains: "fail" }, "it failed", true],
    [{ a: 1 }, "a", false]
  ],
  "Operators in every spelling": [
    ...each(["$eq", "eq"], "x", "x", "y"),
    ...each(["$neq", "$ne", "ne", "neq"], "x", "y", "x"),
    ...each(["$gt", "gt"], 1, 2, 1),
    ...each(["$gte", "gte"], 1, 1, 0),
    ...each(["$lt", "lt"], "b", "a", "b"),
    ...each(["$lte", "lte"], "b", "b", "c"),
    ...each(["$in", "in"], ["x", 1], 1, 2),
    ...each(["$in", "in"], "yz", "xyz", "xy"),
    ...each(["$nin", "nin"], ["x", 1], 2, "1"),
    ...each(["$startsWith", "$starts_with", "starts_with", "startsWith"], "or", "order", "a order"),
    ...each(["$startsWith", "$starts_with", "starts_with"], ["a", "or"], "order", "border"),
    ...each(["$endsWith", "$ends_with", "ends_with", "endsWith"], ["er", "x"], "order", "orders"),
    ...each(["$contains", "contains"], "rd", "order", "other"),
    ...each(["$contains", "contains"], "x", ["w", "x"], ["xy"]),
    ...each(["$contains"], 404, "error 404", "error"),
    ...each(["$regex", "regex"], "^or.*r$", "order", "orders"),
    ...["$exist", "$exists", "exists", "exist"].flatMap((name): ReadonlyArray<Vector> => [
      [{ a: { [name]: true } }, { a: false }, true],
      [{ a: { [name]: true } }, { a: {} }, true],
      [{ a: { [name]: true } }, {}, false],
      [{ a: { [name]: false } }, { a: 1 }, false],
      [{ a: { [name]: false } }, {}, true]
    ])
  ],
  "Decision 1: equality of numbers and numeric texts, and of no other two types": [
    [{ a: 1 }, { a: "1" }, true],
    [{ a: "1.0" }, { a: 1 }, true],
    [{ a: { $in: [1, 2] } }, { a: "2" }, true],
    [{ a: true }, { a: 1 }, false],
    [{ a: true }, { a: "true" }, false],
    [{ a: 0 }, { a: "" }, false],
    [{ a: 0 }, { a: false }, false],
    [{ a: 0 }, { a: null }, false],
    [{ a: 16 }, { a: "0x10" }, false],
    [{ a: 1 }, { a: " 1" }, false],
    [{ a: "1" }, { a: "1.0" }, false]
  ],
  "Decision 2: deep and strict comparison of objects, in any order of keys": [
    [{ a: { $eq: { b: { c: [1, { d: 2, e: 3 }] } } } }, { a: { b: { c: [1, { e: 3, d: 2 }] } } }, true],
    [{ a: { $eq: { b: 1 } } }, { a: { b: 1, c: 2 } }, false],
    [{ a: { $eq: { b: 1 } } }, { a: { b: "1" } }, false],
    [{ a: { $eq: [1, 2] } }, { a: [2, 1] }, false],
    [{ a: { $neq: { b: 1 } } }, { a: { b: 2 } }, true]
  ],
  "Decision 3: operators on arrays, where $neq and $nin exclude every element": [
    [{ tags: { $in: ["y"] } }, { tags: ["x", "y"] }, true],
    [{ tags: { $in: ["z"] } }, { tags: ["x", "y"] }, false],
    [{ tags: { $nin: ["y"] } }, { tags: ["x", "y"] }, false],
    [{ tags: { $nin: ["z"] } }, { tags: ["x", "y"] }, true],
    [{ tags: { $neq: "x" } }, { tags: ["x", "y"] }, false],
    [{ tags: { $neq: "z" } }, { tags: ["x", "y"] }, true],
    [{ tags: { $not: "x" } }, { tags: ["x", "y"] }, false],
    [{ tags: { $startsWith: "y" } }, { tags: ["x", "yes"] }, true],
    [{ sums: { $gt: 5 } }, { sums: [1, 7] }, true],
    [{ sums: { $eq: [1, 7] } }, { sums: [1, 7] }, true],
    [{ sums: 7 }, { sums: [[1], [7]] }, true]
  ],
  "Decision 4: mismatch of a missing key with $neq, $nin and $not": [
    [{ a: { $neq: 1 } }, {}, false],
    [{ a: { $nin: [1] } }, {}, false],
    [{ a: { $not: 1 } }, {}, false],
    [{ a: { $not: { $exist: true } } }, {}, false],
    [{ a: { $not: 1 } }, { a: 2 }, true],
    [{ $not: { a: 1 } }, {}, true]
  ],
  "Decision 5: $and on a field": [
    [{ a: { $and: [{ $gt: 2 }, { $lt: 5 }] } }, { a: 3 }, true],
    [{ a: { $and: [{ $gt: 2 }, { $lt: 5 }] } }, { a: 6 }, false],
    [{ a: { $and: [{ $gt: 2 }] } }, { a: 3 }, true]
  ],
  "Decision 6: dotted key as a path if no such key exists": [
    [{ "order.id": 1 }, { order: { id: 1 } }, true],
    [{ "order.id": 1 }, { "order.id": 1, order: { id: 2 } }, true],
    [{ "order.id": 2 }, { "order.id": 1, order: { id: 2 } }, false],
    [{ "order.id": { $exists: true } }, { order: { id: null } }, true],
    [{ "order.id": { $exists: false } }, {}, true],
    [{ "order.id": { $exists: false } }, { order: { id: 1 } }, false],
    [{ "items.sku": "b" }, { items: [{ sku: "a" }, { sku: "b" }] }, true],
    [{ "items.1.sku": "b" }, { items: [{ sku: "a" }, { sku: "b" }] }, true],
    [{ "items.0.sku": "b" }, { items: [{ sku: "a" }, { sku: "b" }] }, false],
    [{ a: { "b.c": 1 } }, { a: { b: { c: 1 } } }, true],
    [{ "a.": 1 }, { "a.": 1 }, true],
    [{ "a.": 1 }, { a: { "": 1 } }, false]
  ],
  "Operator name without $": [
    // The value has such a key, so the name is the key's.
    [{ a: { in: ["x"] } }, { a: { in: ["x"] } }, true],
    [{ a: { in: ["x"] } }, { a: "x" }, true],
    [{ a: { exists: false } }, { a: { exists: false } }, true],
    [{ a: { ne: null } }, { a: { b: 1 } }, true],
    // At the top of a body it is a key's for every object.
    [{ ne: 5 }, { ne: 5 }, true],
    [{ ne: 5 }, { other: 1 }, false],
    [{ ne: "x" }, "y", true],
    // An operand the operator does not take makes it a key's.
    [{ a: { exists: "yes" } }, { a: { exists: "yes" } }, true],
    [{ gt: true }, { gt: true }, true],
    [{ a: { contains: { b: 1 } } }, { a: { contains: { b: 1 } } }, true]
  ]
}

const request: FilterInput = {
  method: "POST",
  headers: { "x-env": "prod", "set-cookie": ["a=1", "b=2"], in: "x" },
  query: { page: "2", tag: ["a", "b"] },
  path: "/orders/1",
  body: () => ({ type: "order.created" })
}

type Match = { readonly [target in FilterTarget]?: unknown }

/** Decision 7: conditions over the parts of a request, and the targets that do not match. */
export const requestVectors: Readonly<
  Record<
    string,
    ReadonlyArray<readonly [match: Match, failing: ReadonlyArray<FilterTarget>, input?: Partial<FilterInput>]>
  >
> = {
  "Header names of a filter are compared in lower case": [
    [{ headers: { "X-Env": "prod" } }, []],
    [{ headers: { $or: [{ "X-Env": "test" }, { "X-ENV": "prod" }] } }, []],
    [{ headers: { "x-copy": { $ref: "X-Env" } } }, ["headers"]],
    [{ headers: { "X-Copy": { $ref: "X-Env" } } }, [], { headers: { "x-env": "a", "x-copy": "a" } }]
  ],
  "A header or query key that is spelled like an operator is a key": [
    [{ headers: { in: "x" } }, []],
    [{ headers: { ne: "x" }, query: { ne: "x" } }, ["headers", "query"]]
  ],
  "A filter finds a value among the repetitions of a key": [
    [{ query: { tag: "b", page: 2 }, headers: { "set-cookie": "b=2" } }, []],
    [{ query: { tag: "c" } }, ["query"]]
  ],
  "A path condition is a text or operators": [
    [{ path: "/orders/1" }, []],
    [{ path: "/orders" }, ["path"]],
    [{ path: "/orders*" }, ["path"]],
    [{ path: { starts_with: "/orders" } }, []],
    [{ path: { $or: ["/a", { $regex: "\\d$" }], $neq: "/orders/2" } }, []]
  ],
  "A filter does not compare numbers with other texts": [
    [{ body: { a: { $gt: 1 } } }, ["body"], { body: () => ({ a: "x" }) }],
    [{ body: { a: { $lte: 1 } } }, ["body"], { body: () => ({ a: "x" }) }],
    [{ body: { a: { $gt: "x" } } }, ["body"], { body: () => ({ a: 1 }) }],
    [{ body: { a: { $gte: 0 } } }, ["body"], { body: () => ({ a: null }) }],
    [{ body: { a: { $gt: "10" } } }, [], { body: () => ({ a: "9" }) }]
  ]
}

/** The same for the method, which only matchers have. */
export const methodVectors: ReadonlyArray<readonly [match: Match, failing: ReadonlyArray<FilterTarget>]> = [
  [{ method: "POST" }, []],
  [{ method: ["PUT", "POST"] }, []],
  [{ method: { $in: ["PUT"] } }, ["method"]],
  [{ method: { $regex: "^P" } }, []],
  [{ method: "post" }, ["method"]]
]

export const requestOf = (input: Partial<FilterInput> = {}): FilterInput => ({ ...request, ...input })

/** Decision 8: conditions of a body that are not valid, the place in them, and what is said about it. */
export const refused: ReadonlyArray<readonly [condition: unknown, path: string, message: RegExp]> = [
  [{ a: { $foo: 1 } }, "a.$foo", /not an operator/],
  [{ $GT: 1 }, "$GT", /not an operator/],
  [{ total: { $gt: true } }, "total.$gt", /takes a number or a text/],
  [{ a: { $lte: null } }, "a.$lte", /takes a number/],
  [{ a: { $in: { b: 1 } } }, "a.$in", /takes a list/],
  [{ a: { $nin: [[1]] } }, "a.$nin", /takes a list/],
  [{ a: { $startsWith: 1 } }, "a.$startsWith", /takes a text/],
  [{ a: { $endsWith: ["a", 1] } }, "a.$endsWith", /takes a text/],
  [{ a: { $exists: "yes" } }, "a.$exists", /true or false/],
  [{ a: { $contains: {} } }, "a.$contains", /takes a text/],
  [{ a: { $regex: 1 } }, "a.$regex", /takes a pattern/],
  [{ a: { $regex: "(" } }, "a.$regex", /not valid/],
  [{ a: { regex: "(" } }, "a.regex", /not valid/],
  [{ a: { $regex: "(?=a)" } }, "a.$regex", /not valid/],
  [{ a: { $regex: "(a)\\1" } }, "a.$regex", /not valid/],
  [{ a: { $regex: { $ref: "b" } } }, "a.$regex", /does not take a \$ref/],
  [{ $or: { a: 1 } }, "$or", /takes a list/],
  [{ $or: [{ a: 1 }, { b: { $x: 1 } }] }, "$or[1].b.$x", /not an operator/],
  [{ a: { $and: 1 } }, "a.$and", /takes a list/],
  [{ a: { $not: { $x: 1 } } }, "a.$not.$x", /not an operator/],
  [{ a: { $ref: 1 } }, "a.$ref", /takes a path/],
  [{ a: { $gt: { $ref: "b[*]" } } }, "a.$gt.$ref", /not a path/],
  [{ a: { $ref: "b..c" } }, "a.$ref", /not a path/],
  [{ "odd key": [{ $x: 1 }] }, '["odd key"][0].$x', /not an operator/]
]
