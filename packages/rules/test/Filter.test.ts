import type { Json } from "@tidegate/model/Rule"
import { allOf, compileConditions, compileFilter, type FilterInput } from "@tidegate/rules/Filter"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"

const matches = (condition: unknown, document: Json): boolean =>
  Result.getOrThrow(compileConditions(condition))(document)

/** Condition, document, whether they match. */
type Vector = readonly [condition: unknown, document: Json, expected: boolean]

const table = (vectors: ReadonlyArray<Vector>): void => {
  for (const [condition, document, expected] of vectors) {
    it(`${JSON.stringify(condition)} ← ${JSON.stringify(document)}: ${expected}`, () => {
      assert.strictEqual(matches(condition, document), expected)
    })
  }
}

const refusal = (condition: unknown): { readonly path: string; readonly message: string } => {
  const result = compileConditions(condition)
  return Result.isFailure(result) ? result.failure : assert.fail("accepted")
}

describe("the contract's vectors", () => {
  const lines = { items: [{ sku: "a" }, { sku: "b" }] }
  table([
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
  ])
})

describe("the structure rules", () => {
  table([
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
  ])

  describe("absence, also inside $or and $and of the key", () => {
    table([
      [{ a: { $or: [{ $exist: false }, 1] } }, {}, true],
      [{ a: { $or: [{ $exist: false }, 1] } }, { a: 2 }, false],
      [{ a: { $and: [{ $exist: false }] } }, {}, true],
      [{ a: { $and: [] } }, {}, false],
      [{ a: { $exist: false, $neq: 1 } }, {}, false]
    ])
  })

  describe("a body that is not JSON is its text", () => {
    table([
      ["ping", "ping", true],
      [{ $startsWith: "<xml" }, "<xml/>", true],
      [{ contains: "fail" }, "it failed", true],
      [{ a: 1 }, "a", false]
    ])
  })
})

describe("the operators, in every spelling", () => {
  const each = (names: ReadonlyArray<string>, operand: unknown, yes: Json, no: Json): void =>
    table(
      names.flatMap((name): ReadonlyArray<Vector> => [
        [{ a: { [name]: operand } }, { a: yes }, true],
        [{ a: { [name]: operand } }, { a: no }, false],
        [{ a: { [name]: operand } }, {}, false]
      ])
    )
  each(["$eq", "eq"], "x", "x", "y")
  each(["$neq", "$ne", "ne", "neq"], "x", "y", "x")
  each(["$gt", "gt"], 1, 2, 1)
  each(["$gte", "gte"], 1, 1, 0)
  each(["$lt", "lt"], "b", "a", "b")
  each(["$lte", "lte"], "b", "b", "c")
  each(["$in", "in"], ["x", 1], 1, 2)
  each(["$in", "in"], "yz", "xyz", "xy")
  each(["$nin", "nin"], ["x", 1], 2, "1")
  each(["$startsWith", "$starts_with", "starts_with", "startsWith"], "or", "order", "a order")
  each(["$startsWith", "$starts_with", "starts_with"], ["a", "or"], "order", "border")
  each(["$endsWith", "$ends_with", "ends_with", "endsWith"], ["er", "x"], "order", "orders")
  each(["$contains", "contains"], "rd", "order", "other")
  each(["$contains", "contains"], "x", ["w", "x"], ["xy"])
  each(["$contains"], 404, "error 404", "error")
  each(["$regex", "regex"], "^or.*r$", "order", "orders")

  table(
    ["$exist", "$exists", "exists", "exist"].flatMap((name): ReadonlyArray<Vector> => [
      [{ a: { [name]: true } }, { a: false }, true],
      [{ a: { [name]: true } }, { a: {} }, true],
      [{ a: { [name]: true } }, {}, false],
      [{ a: { [name]: false } }, { a: 1 }, false],
      [{ a: { [name]: false } }, {}, true]
    ])
  )
})

describe("decision 1: numbers and numeric texts are equal, nothing else of two kinds is", () => {
  table([
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
  ])
})

describe("decision 2: objects are compared deep, in any order of keys, and strictly inside", () => {
  table([
    [{ a: { $eq: { b: { c: [1, { d: 2, e: 3 }] } } } }, { a: { b: { c: [1, { e: 3, d: 2 }] } } }, true],
    [{ a: { $eq: { b: 1 } } }, { a: { b: 1, c: 2 } }, false],
    [{ a: { $eq: { b: 1 } } }, { a: { b: "1" } }, false],
    [{ a: { $eq: [1, 2] } }, { a: [2, 1] }, false],
    [{ a: { $neq: { b: 1 } } }, { a: { b: 2 } }, true]
  ])
})

describe("decision 3: operators look into arrays; $neq and $nin want no such element", () => {
  table([
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
  ])
})

describe("decision 4: a missing key matches no $neq, no $nin and no $not of the key", () => {
  table([
    [{ a: { $neq: 1 } }, {}, false],
    [{ a: { $nin: [1] } }, {}, false],
    [{ a: { $not: 1 } }, {}, false],
    [{ a: { $not: { $exist: true } } }, {}, false],
    [{ a: { $not: 1 } }, { a: 2 }, true],
    [{ $not: { a: 1 } }, {}, true]
  ])
})

describe("decision 5: $and works on a field", () => {
  table([
    [{ a: { $and: [{ $gt: 2 }, { $lt: 5 }] } }, { a: 3 }, true],
    [{ a: { $and: [{ $gt: 2 }, { $lt: 5 }] } }, { a: 6 }, false],
    [{ a: { $and: [{ $gt: 2 }] } }, { a: 3 }, true]
  ])
})

describe("decision 6: a dotted key is a path when no such key is there", () => {
  table([
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
  ])
})

describe("decision 7: headers, query and path", () => {
  const request: FilterInput = {
    method: "POST",
    headers: { "x-env": "prod", "set-cookie": ["a=1", "b=2"], in: "x" },
    query: { page: "2", tag: ["a", "b"] },
    path: "/orders/1",
    body: () => ({ type: "order.created" })
  }
  const failing = (conditions: Parameters<typeof compileFilter>[0], input = request) =>
    Result.getOrThrow(compileFilter(conditions)).failingTargets(input)

  it("lower-cases the names of headers", () => {
    assert.deepStrictEqual(failing({ headers: { "X-Env": "prod" } }), [])
    assert.deepStrictEqual(failing({ headers: { $or: [{ "X-Env": "test" }, { "X-ENV": "prod" }] } }), [])
    assert.deepStrictEqual(failing({ headers: { "x-copy": { $ref: "X-Env" } } }), ["headers"])
    assert.deepStrictEqual(
      failing({ headers: { "X-Copy": { $ref: "X-Env" } } }, { ...request, headers: { "x-env": "a", "x-copy": "a" } }),
      []
    )
  })
  it("reads a header or query key that is spelled like an operator as the key", () => {
    assert.deepStrictEqual(failing({ headers: { in: "x" } }), [])
    assert.deepStrictEqual(failing({ headers: { ne: "x" }, query: { ne: "x" } }), ["headers", "query"])
  })
  it("finds a value among the repetitions of a key", () => {
    assert.deepStrictEqual(failing({ query: { tag: "b", page: 2 }, headers: { "set-cookie": "b=2" } }), [])
    assert.deepStrictEqual(failing({ query: { tag: "c" } }), ["query"])
  })
  it("takes the path as a text or as operators", () => {
    assert.deepStrictEqual(failing({ path: "/orders/1" }), [])
    assert.deepStrictEqual(failing({ path: "/orders" }), ["path"])
    assert.deepStrictEqual(failing({ path: { starts_with: "/orders" } }), [])
    assert.deepStrictEqual(failing({ path: { $or: ["/a", { $regex: "\\d$" }], $neq: "/orders/2" } }), [])
  })
  it("does not compare a number with a text that is none", () => {
    assert.isFalse(matches({ a: { $gt: 1 } }, { a: "x" }))
    assert.isFalse(matches({ a: { $lte: 1 } }, { a: "x" }))
    assert.isFalse(matches({ a: { $gt: "x" } }, { a: 1 }))
    assert.isFalse(matches({ a: { $gte: 0 } }, { a: null }))
    assert.isTrue(matches({ a: { $gt: "10" } }, { a: "9" }))
  })
  it("takes a method, a list of them, or operators", () => {
    assert.deepStrictEqual(failing({ method: "POST" }), [])
    assert.deepStrictEqual(failing({ method: ["PUT", "POST"] }), [])
    assert.deepStrictEqual(failing({ method: { $in: ["PUT"] } }), ["method"])
  })
  it("names every failing target once, whatever the number of filters", () => {
    const filter = (conditions: object) => Result.getOrThrow(compileFilter(conditions))
    const both = allOf([
      filter({ body: { type: "x" }, path: "/" }),
      filter({ body: { type: "y" }, headers: { "x-env": "prod" } })
    ])
    assert.deepStrictEqual(both.failingTargets(request), ["body", "path"])
    assert.deepStrictEqual(filter({}).failingTargets(request), [])
  })
  it("reads the body only when it is asked about, and once", () => {
    let reads = 0
    const input: FilterInput = {
      ...request,
      body: () => {
        reads++
        return null
      }
    }
    assert.deepStrictEqual(failing({ headers: { "x-env": "prod" }, path: { $exist: true } }, input), [])
    assert.strictEqual(reads, 0)
    const twice = Result.getOrThrow(compileFilter({ body: null }))
    assert.deepStrictEqual(allOf([twice, twice]).failingTargets(input), [])
    assert.strictEqual(reads, 1)
  })
})

describe("a name without $", () => {
  table([
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
  ])
})

describe("decision 8: what is not valid is refused, with its place", () => {
  const refused: ReadonlyArray<readonly [condition: unknown, path: string, message: RegExp]> = [
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
    [{ "odd key": [{ $x: 1 }] }, '["odd key"][0].$x', /not an operator/],
    [{ a: undefined }, "a", /not a JSON value/],
    [{ a: Number.NaN }, "a", /not a JSON value/]
  ]
  for (const [condition, path, message] of refused) {
    it(`${JSON.stringify(condition)}: ${path}`, () => {
      const failure = refusal(condition)
      assert.strictEqual(failure.path, path)
      assert.match(failure.message, message)
    })
  }

  it("targets have shapes, too", () => {
    const pathOf = (conditions: object) => {
      const result = compileFilter(conditions)
      return Result.isFailure(result) ? result.failure.path : assert.fail()
    }
    assert.strictEqual(pathOf({ headers: "x" }), "headers")
    assert.strictEqual(pathOf({ query: ["x"] }), "query")
    assert.strictEqual(pathOf({ path: 1 }), "path")
    assert.strictEqual(pathOf({ path: { sub: 1 } }), "path.sub")
    assert.strictEqual(pathOf({ path: ["/a"] }), "path")
    assert.strictEqual(pathOf({ body: { total: { $gt: [] } } }), "body.total.$gt")
  })
})
