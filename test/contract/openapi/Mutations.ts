import type { Body } from "../../support/Gateway.ts"
import type { Operation } from "./Document.ts"

/*
 * From a call that is right, many that are wrong or odd: each has one thing changed. What is changed follows from what the document says of
 * the operation, so a new operation, parameter or member is tried as soon as it is declared.
 */

export interface Call {
  /** What was changed. */
  readonly name: string
  readonly method: string
  /** The path's parameters, by their names. */
  readonly params: Readonly<Record<string, string>>
  /** As it is sent, without the question mark. */
  readonly query: string
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: Uint8Array | null
}

/** Draws, as all random runs of the suites do. */
export interface Draw {
  /** At least 0, less than 1. */
  readonly next: () => number
}

const but = (call: Call, change: Partial<Call>): Call => ({ ...call, ...change })

const encoder = new TextEncoder()

/** Some of them in any order: all, when there are no more. */
const some = <A>(values: ReadonlyArray<A>, most: number, draw: Draw): ReadonlyArray<A> =>
  values
    .map((value) => ({ value, place: draw.next() }))
    .sort((a, b) => a.place - b.place)
    .slice(0, most)
    .map(({ value }) => value)

/** What may stand where a JSON value is expected, as it is written. */
const values = [
  "null",
  "true",
  "0",
  "-1",
  "1.5",
  "1e400",
  "-1e400",
  "99999999999999999999",
  '""',
  '" "',
  '"x"',
  `"${"x".repeat(20_000)}"`,
  '"\\u0000"',
  '"\\ud800"',
  '"\u202e\u{1d54f}\u0301"',
  '"__proto__"',
  '"1970-01-01"',
  '"NaN"',
  '"req_00000000000000000000000000"',
  '"{{body.a}}"',
  '"http://127.0.0.1:1/"',
  "[]",
  "[null]",
  '[[["x"]]]',
  `[${"1,".repeat(5_000)}1]`,
  "{}",
  '{"__proto__":{"x":1},"constructor":{"prototype":{}}}',
  '{"$where":"1","$regex":"(a+)+$"}',
  `${'{"a":'.repeat(70)}1${"}".repeat(70)}`
]

/** What may stand where a parameter's value is, encoded as it is sent. */
const texts = [
  "",
  "%20",
  "null",
  "undefined",
  "true",
  "0",
  "-1",
  "1e309",
  "NaN",
  "99999999999999999999",
  "now-1h",
  "now-99999999999d",
  "9999-12-31T23:59:59.999Z",
  "%00",
  "%ZZ",
  "%C3%28",
  "%F0%9D%95%8F%E2%80%AE",
  "__proto__",
  "constructor",
  "%27%20or%201%3D1--",
  "%25",
  "..%2F..%2Fetc",
  "a,,b,%20,",
  `${"a,".repeat(2_000)}a`,
  "x".repeat(5_000),
  "eyJmIjoiYSJ9",
  "%7B%7D"
]

/** What may stand where an id is, beside the ids of other things. */
const oddIds = [
  "%20",
  "x",
  "null",
  "%00",
  "%ZZ",
  "%C3%28",
  "..",
  "%2e%2e%2f",
  "a%2Fb",
  "a;b",
  "__proto__",
  "%F0%9D%95%8F",
  "x".repeat(101),
  "x".repeat(5_000),
  "src_%27",
  "%25"
]

type Place = ReadonlyArray<string>
type Replace = (place: Place, raw: string | null) => Uint8Array

/**
 * The body with what is at a place written otherwise; null: left out. Each has a name of its own where it has one: what else is in it is
 * to decide.
 */
const rewritten = (body: Body): Replace => {
  const hole = "@@here@@"
  let times = 0
  return (place, raw) => {
    const copy = structuredClone(body)
    if (typeof copy.name === "string") copy.name += `-${times++}`
    const last = place.at(-1) ?? ""
    let at: Body = copy
    for (const name of place.slice(0, -1)) {
      if (typeof at[name] !== "object" || at[name] === null) at[name] = {}
      at = at[name]
    }
    if (raw === null) delete at[last]
    else at[last] = hole
    return encoder.encode(JSON.stringify(copy).replace(`"${hole}"`, () => raw ?? ""))
  }
}

/** The place of every member of a value. */
const placesIn = (value: Body, path: Place = []): Array<Place> =>
  typeof value !== "object" || value === null
    ? []
    : Object.keys(value).flatMap((name) => {
        const place = [...path, name]
        const places = placesIn(value[name], place)
        places.push(place)
        return places
      })

/** The place of every member that a schema names, two levels deep. */
const placesOf = (schema: Body, schemas: Body, path: Place = []): Array<Place> => {
  if (path.length > 2 || typeof schema !== "object" || schema === null) return []
  if (typeof schema.$ref === "string") return placesOf(schemas[schema.$ref.split("/").at(-1)], schemas, path)
  const parts = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]
  return [
    ...parts.flatMap((part: Body) => placesOf(part, schemas, path)),
    ...Object.entries<Body>(schema.properties ?? {}).flatMap(([name, member]) => {
      const place = [...path, name]
      const places = placesOf(member, schemas, place)
      places.push(place)
      return places
    })
  ]
}

/** Bodies that are wrong as a whole, and what is said of them. */
const wholes = (right: string): ReadonlyArray<readonly [name: string, body: Uint8Array, type?: string | null]> => [
  ...["", " ", "null", "true", "1", '"x"', "[]", "[1]", "{", "{]", '{"a":1}{', "NaN", "{'a':1}", '{"a":1,}'].map(
    (text) => [`a body ${text}`, encoder.encode(text)] as const
  ),
  ["a body of no UTF-8", Uint8Array.of(0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d)],
  ["a body with a byte order mark", encoder.encode(`\ufeff${right}`)],
  ["a body of 20,000 levels", encoder.encode(`${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`)],
  ["a body with members nobody knows", encoder.encode(right.replace(/^\{/, '{"nobody_knows":{"a":[1]},"":1,'))],
  [
    "a body with members that objects have by nature",
    encoder.encode(right.replace(/^\{/, '{"__proto__":{"name":"x"},"constructor":1,"toString":null,'))
  ],
  ["a body whose first member comes twice", encoder.encode(right.replace(/^\{("\w+")/, "{$1:null,$1"))],
  ["a body said to be text", encoder.encode(right), "text/plain"],
  ["a body said to be a form", encoder.encode(right), "multipart/form-data; boundary=x"],
  ["a body said to be UTF-16", encoder.encode(right), "application/json; charset=utf-16"],
  ["a body of no said type", encoder.encode(right), null],
  ["a body of an empty type", encoder.encode(right), ""]
]

const withHeader = (call: Call, name: string, value: string | null): Call["headers"] => [
  ...call.headers.filter(([other]) => other !== name),
  ...(value === null ? [] : [[name, value] as const])
]

const headerChanges = (call: Call): ReadonlyArray<Call> =>
  (
    [
      ["x-team-id", ""],
      ["x-team-id", "tm_nobody"],
      ["x-team-id", "\u00e9"],
      ["x-team-id", "x".repeat(4_000)],
      ["x-team-id", "__proto__"],
      ["authorization", null],
      ["authorization", "Bearer"],
      ["authorization", "Bearer gwk_of_nobody_at_all"],
      ["authorization", "Basic Z3drOg=="],
      ["accept", "text/html"],
      ["content-encoding", "gzip"],
      ["x-http-method-override", "DELETE"]
    ] as const
  ).map(([name, value]) =>
    but(call, { name: `${name}: ${value?.slice(0, 40) ?? "left out"}`, headers: withHeader(call, name, value) })
  )

const queryChanges = ({ spec }: Operation, call: Call, draw: Draw): ReadonlyArray<Call> =>
  spec.parameters
    .filter((parameter: Body) => parameter.in === "query")
    .flatMap(({ name }: Body) => {
      const others = call.query.split("&").filter((pair) => pair !== "" && !pair.startsWith(`${name}=`))
      const mine = call.query.split("&").find((pair) => pair.startsWith(`${name}=`))
      const changes = [
        ...some(texts, 6, draw).map((text) => [`${name}=${text}`]),
        [`${name}`],
        [`${name}=x`, `${name}=y`],
        [`${name}[]=x`, `${name}[__proto__]=y`],
        ...(mine === undefined ? [] : [[], [mine, mine]])
      ]
      return changes.map((pairs) =>
        but(call, {
          name: `?${pairs.join("&").slice(0, 60)} for ${name}`,
          query: [...others, ...pairs].join("&")
        })
      )
    })

const pathChanges = (call: Call, ids: Readonly<Record<string, string>>, draw: Draw): ReadonlyArray<Call> =>
  Object.entries(call.params).flatMap(([name, right]) => {
    const [prefix = ""] = right.split("_")
    const unknown = right.slice(0, prefix.length + 1) + "0".repeat(Math.max(right.length - prefix.length - 1, 1))
    const another = some(
      Object.values(ids).filter((id) => id !== right),
      4,
      draw
    )
    return [unknown, right.toUpperCase(), `${right}%20`, ...another, ...oddIds].map((id) =>
      but(call, { name: `${name} ${id.slice(0, 60)}`, params: { ...call.params, [name]: id } })
    )
  })

const bodyChanges = ({ spec }: Operation, body: Body, schemas: Body, call: Call, draw: Draw): ReadonlyArray<Call> => {
  const schema = spec.requestBody?.content["application/json"].schema
  const replace = rewritten(body)
  const places = new Map(
    [...placesIn(body), ...placesOf(schema, schemas)].map((place) => [place.join("."), place] as const)
  )
  const present = new Set(placesIn(body).map((place) => place.join(".")))
  const members = some([...places], 30, draw).flatMap(([name, place]) => {
    const left = present.has(name) ? [but(call, { name: `without ${name}`, body: replace(place, null) })] : []
    const changed = some(values, 4, draw).map((raw) =>
      but(call, { name: `${name} = ${raw.slice(0, 60)}`, body: replace(place, raw) })
    )
    return left.concat(changed)
  })
  const whole = wholes(JSON.stringify(body)).map(([name, bytes, type]) =>
    but(call, {
      name,
      body: bytes,
      headers: type === undefined ? call.headers : withHeader(call, "content-type", type)
    })
  )
  return [...members, ...whole, but(call, { name: "no body", body: null })]
}

/** The changed calls of an operation. `body` is what the right one has, if any. */
export const mutations = (
  operation: Operation,
  { body, call, ids, schemas }: { body: Body; call: Call; ids: Readonly<Record<string, string>>; schemas: Body },
  draw: Draw
): ReadonlyArray<Call> => [
  ...pathChanges(call, ids, draw),
  ...queryChanges(operation, call, draw),
  ...headerChanges(call),
  ...(operation.spec.requestBody === undefined ? [] : bodyChanges(operation, body ?? {}, schemas, call, draw)),
  ...(body === undefined && operation.method !== "GET" && operation.spec.requestBody === undefined
    ? wholes("{}").map(([name, bytes]) => but(call, { name: `${name} where there is none`, body: bytes }))
    : [])
]
