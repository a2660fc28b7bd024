import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { OpenApi } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { newId } from "@tidegate/model/Ids"
import { Api } from "../src/contract/Api.ts"
import { call, teams } from "./ControlServer.ts"
import { lists, type List, type Row } from "./EveryList.ts"
import { type World, Worlds } from "./ListWorld.ts"

/*
 * Every list that the contract has, by its row in the table: what narrows and orders it, how many rows it shows, what it is wrapped
 * in, and where its cursors lead.
 */

// oxlint-disable-next-line typescript/no-explicit-any -- a document is read as it is
const document: any = OpenApi.fromApi(Api)

// oxlint-disable-next-line typescript/no-explicit-any -- a document is read as it is
const resolved = (schema: any): any =>
  schema?.$ref === undefined ? schema : document.components.schemas[schema.$ref.split("/").at(-1)]

/** The paths of all that answers a list. Metrics have `models` too: a row of numbers for each id that is asked for. */
const declared = Object.keys(document.paths).filter((path) => {
  const schema = document.paths[path].get?.responses["200"]?.content?.["application/json"]?.schema
  // The catalogs are the same for everybody, and whole. Versions have numbers and no ids: `WorkflowVersions.test.ts` reads their pages.
  const isAnother = path.startsWith("/metrics/") || /(?:-providers|-types|\/versions)$/.test(path)
  return !isAnother && resolved(schema)?.properties?.models !== undefined
})

const url = (list: List, world: World, ...query: ReadonlyArray<string>): string => {
  const { id, path, whole } = list
  const isNarrowed = whole === undefined || query.some((one) => one.split("=")[0] === whole.split("=")[0])
  return `${path.replace("{id}", id?.(world) ?? "")}?${[...(isNarrowed ? [] : [whole]), ...query].join("&")}`
}

const ids = (rows: ReadonlyArray<Row>): ReadonlyArray<unknown> => rows.map((row) => row["id"] ?? row["connection_id"])

/** The whole list, page by page. */
const all = Effect.fnUntraced(function* (list: List, world: World, ...query: ReadonlyArray<string>) {
  const rows: Array<Row> = []
  for (let cursor: string | null = ""; cursor !== null;) {
    const path = url(list, world, ...query, ...(cursor === "" ? [] : [`cursor=${cursor}`]))
    const { body, status } = yield* call("GET", path)
    expect([path, status, body.message]).toEqual([path, 200, undefined])
    rows.push(...body.models)
    cursor = body.next_cursor
  }
  return rows
})

const refused = Effect.fnUntraced(function* (path: string, code: string, key: string = teams.a.key) {
  const { body, status } = yield* call("GET", path, { key })
  expect([path, status, body.code]).toEqual([path, 400, code])
})

/** Two things that may stand under one name. */
const twoOf: Readonly<Record<string, readonly [string, string]>> = {
  from: ["now-2h", "now-1h"],
  to: ["now", "now-1m"],
  q: ["a", "b"],
  cursor: ["a", "b"],
  batch_operation_id: ["bop_1", "bop_2"],
  bucket: ["ongoing", "history"],
  include_counts: ["true", "false"]
}

layer(Worlds.layer, { excludeTestServices: true })("Every list", (it) => {
  it.effect("Every list of the API has a row in the test table", () =>
    Effect.sync(() => {
      expect(lists.map(({ path }) => path).toSorted()).toEqual(declared.toSorted())
      expect(lists.length).toBeGreaterThanOrEqual(14)
    })
  )

  for (const list of lists) {
    const { also = [], byDefault, clamps, cursors, dir, envelope, filters, most, orders, path } = list

    it.effect(`List ${path} takes the documented parameters and no others`, () =>
      Effect.sync(() => {
        const taken = document.paths[path].get.parameters
          .filter((parameter: { in: string }) => parameter.in === "query")
          .map(({ name }: { name: string }) => name)
        const paging = { none: [], onward: ["cursor", "next"], both: ["cursor", "next", "prev"] }[cursors]
        expect(taken.toSorted()).toEqual(
          [
            "team_id",
            ...Object.keys(filters),
            ...also,
            ...paging,
            ...(most === null ? [] : ["limit"]),
            ...(orders.length > 0 ? ["order_by"] : []),
            ...(dir ? ["dir"] : [])
          ].toSorted()
        )
      })
    )

    it.effect(`List ${path} takes a parameter and its alias with equal values only`, () =>
      Effect.gen(function* () {
        const { a } = yield* Worlds
        for (const { description = "", name, schema } of document.paths[path].get.parameters) {
          const own = /^Alias of (\w+)/.exec(description)?.[1]
          // Of values that may be several, those under all names count.
          if (own === undefined || resolved(schema).type === "array") continue
          const [one, other] = twoOf[own]!
          yield* refused(url(list, a, `${own}=${one}`, `${name}=${other}`), "VALIDATION_ERROR")
          const same = yield* call("GET", url(list, a, `${own}=${one}`, `${name}=${one}`))
          if (own !== "cursor") expect([path, name, same.status]).toEqual([path, name, 200])
        }
      })
    )

    it.effect(`List ${path} is narrowed by each of its filters`, () =>
      Effect.gen(function* () {
        const { a } = yield* Worlds
        const whole = yield* all(list, a)
        expect(whole.length).toBeGreaterThan(0)
        for (const [name, filter] of Object.entries(filters)) {
          const [value, holds] = filter(a, whole)
          const found = yield* all(list, a, `${name}=${encodeURIComponent(value)}`)
          const expected = whole.filter(holds)
          expect([name, ids(found)]).toEqual([name, ids(expected)])
          expect([name, expected.length > 0, expected.length < whole.length]).toEqual([name, true, true])
        }
      })
    )

    it.effect(`List ${path} has the documented envelope, order and limits`, () =>
      Effect.gen(function* () {
        const { a } = yield* Worlds
        const { body } = yield* call("GET", url(list, a))
        expect(Object.keys(body).toSorted()).toEqual(envelope.toSorted())
        expect(body.count).toBe(body.models.length)
        expect(body.has_more).toBe(body.next_cursor !== null)
        // What the contract names cursors beside next_cursor says the same.
        for (const { next = body.next_cursor } of [body, body.pagination ?? {}]) expect(next).toBe(body.next_cursor)
        const whole = ids(yield* all(list, a))
        if (most !== null) {
          for (const [asked, applied] of [
            [null, 100],
            [most, most],
            [most + 1, most],
            ["1" + "0".repeat(20), most],
            [2, 2],
            ...(clamps === true ? [[0, 1] as const, [-1, 1] as const] : [])
          ] as const) {
            const page = (yield* call("GET", url(list, a, ...(asked === null ? [] : [`limit=${asked}`])))).body
            if ("pagination" in page) expect([asked, page.pagination.limit]).toEqual([asked, applied])
            if ("limit" in page) expect(page.limit).toBe(applied)
            expect(ids(page.models)).toEqual(whole.slice(0, applied))
          }
          for (const wrong of [...(clamps === true ? [] : ["0", "-1"]), "1.0", "1.5", "1e2", "x", "", "9".repeat(201)])
            yield* refused(url(list, a, `limit=${wrong}`), "VALIDATION_ERROR")
        }
        if (dir) {
          const [first, last] = byDefault === "asc" ? [whole, whole.toReversed()] : [whole.toReversed(), whole]
          expect(ids(yield* all(list, a, "dir=ASC"))).toEqual(first)
          expect(ids(yield* all(list, a, "dir=desc"))).toEqual(last)
          yield* refused(url(list, a, "dir=up"), "VALIDATION_ERROR")
        }
        for (const order of orders) {
          const rows = yield* all(list, a, `order_by=${order}`, "dir=asc")
          const values = rows.map((row) => String(row[order]))
          expect([order, values]).toEqual([order, values.toSorted()])
          const inPages = yield* all(list, a, `order_by=${order}`, "dir=asc", "limit=2")
          expect([order, ids(inPages)]).toEqual([order, ids(rows)])
          const back = yield* all(list, a, `order_by=${order}`, "dir=desc", "limit=2")
          expect([order, ids(back)]).toEqual([order, ids(rows).toReversed()])
        }
        if (orders.length > 0) yield* refused(url(list, a, "order_by=team_id"), "VALIDATION_ERROR")
      })
    )

    if (cursors === "none") {
      it.effect(`List ${path} has no pages and refuses cursors`, () =>
        Effect.gen(function* () {
          const { a } = yield* Worlds
          for (const name of ["cursor", "next", "prev"]) yield* refused(url(list, a, `${name}=x`), "VALIDATION_ERROR")
        })
      )
      continue
    }

    const cursorOf = (world: World, ...query: ReadonlyArray<string>) =>
      Effect.map(call("GET", url(list, world, "limit=2", ...query)), ({ body }): string => {
        const cursor = body.next_cursor
        expect(cursor).toEqual(expect.any(String))
        return cursor
      })

    it.effect(`List ${path} takes only its own unchanged cursor, with the same filters and team`, () =>
      Effect.gen(function* () {
        const { a } = yield* Worlds
        const cursor = yield* cursorOf(a)
        for (const name of ["cursor", "next"]) {
          expect((yield* call("GET", url(list, a, "limit=3", `${name}=${cursor}`))).body.count).toBe(3)
        }
        for (let at = 0; at < cursor.length; at += 7) {
          const changed = cursor.slice(0, at) + (cursor[at] === "A" ? "B" : "A") + cursor.slice(at + 1)
          yield* refused(url(list, a, `cursor=${changed}`), "INVALID_CURSOR")
        }
        for (const changed of [
          cursor.slice(0, -1),
          `${cursor}A`,
          `${cursor}=`,
          `${cursor}%20`,
          cursor.toUpperCase(),
          "x"
        ]) {
          yield* refused(url(list, a, `cursor=${changed}`), "INVALID_CURSOR")
        }
        const forged = Buffer.from(
          Buffer.from(cursor, "base64url")
            .toString()
            .replace(/"n":\d+/, '"n":9')
        ).toString("base64url")
        yield* refused(url(list, a, `cursor=${forged}`), "INVALID_CURSOR")
        const whole = yield* all(list, a)
        for (const [name, filter] of Object.entries(filters)) {
          const narrowed = `${name}=${encodeURIComponent(filter(a, whole)[0])}`
          yield* refused(url(list, a, narrowed, `cursor=${cursor}`), "INVALID_CURSOR")
        }
        // A list is in its own order unless told, and its cursor is of that order.
        const inOrder = yield* Effect.forEach(orders, (order) =>
          Effect.map(call("GET", url(list, a, `order_by=${order}`, `cursor=${cursor}`)), ({ body }) => body.code)
        )
        expect(inOrder.filter((code) => code === undefined).length).toBe(Math.min(1, orders.length))
        expect(new Set(inOrder)).toEqual(new Set(orders.length > 1 ? ["INVALID_CURSOR", undefined] : inOrder))
        if (dir) {
          const other = byDefault === "asc" ? "desc" : "asc"
          yield* refused(url(list, a, `dir=${other}`, `cursor=${cursor}`), "INVALID_CURSOR")
        }
        for (const other of lists.filter((one) => one !== list && one.cursors !== "none")) {
          yield* refused(url(other, a, `cursor=${cursor}`), "INVALID_CURSOR")
        }
        // What is one resource's is not found by another team at all.
        if (list.id === undefined) yield* refused(url(list, a, `cursor=${cursor}`), "INVALID_CURSOR", teams.b.key)
      })
    )

    it.effect(`List ${path} shows each row once while rows are added and removed`, () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { a } = yield* Worlds
        const { deletes, first, table } = list
        const isDeleted = first === undefined || deletes === true
        if (table === undefined) throw new Error("a list with cursors says what table it reads")
        const before = ids(yield* all(list, a))
        const seen: Array<unknown> = []
        const put = (row: object) =>
          sql.unsafe(`insert into ${table} select (jsonb_populate_record(null::${table}, $1::jsonb)).*`, [
            JSON.stringify(row)
          ])
        // Records of what is past refer to a resource, so its row stays.
        const take = (id: string) =>
          Effect.map(
            sql.unsafe<{ row: object }>(
              isDeleted
                ? `delete from ${table} t where id = $1 returning to_jsonb(t) as row`
                : `update ${table} t set deleted_at = now() where id = $1
                    returning to_jsonb(t) || '{"deleted_at":null}'::jsonb as row`,
              [id]
            ),
            ([found]) => found
          )
        const giveBack = (row: object) =>
          isDeleted
            ? put(row)
            : sql.unsafe(`update ${table} set deleted_at = null where id = $1`, [(row as { readonly id: string }).id])
        const taken: Array<object> = []
        const added: Array<string> = []
        for (let cursor = ""; ;) {
          const { body } = yield* call("GET", url(list, a, "limit=3", ...(cursor === "" ? [] : [`cursor=${cursor}`])))
          seen.push(...ids(body.models))
          cursor = body.next_cursor ?? ""
          if (cursor === "") break
          // The row that the cursor stands at goes, and a newer one comes.
          const last = body.models.at(-1).id as string
          const { row } = (yield* take(last))!
          taken.push(row)
          // What one request became has its time.
          const at = path.startsWith("/requests/{id}") ? Date.parse(body.models.at(-1).created_at) : Date.now()
          const id = newId(`${last.slice(0, last.indexOf("_"))}_`, at)
          yield* put({ ...row, id, attempt_number: 100 + added.length, token_hash: id, ...first?.(id, new Date()) })
          added.push(id)
        }
        for (const row of taken) yield* giveBack(row)
        yield* sql.unsafe(`delete from ${table} where id = any($1)`, [added])
        expect(new Set(seen).size).toBe(seen.length)
        expect(seen.filter((id) => before.includes(id))).toEqual(before)
        expect(ids(yield* all(list, a))).toEqual(before)
      })
    )
  }
})
