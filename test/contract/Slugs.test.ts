import { createHmac } from "node:crypto"
import { describe, expect } from "vitest"
import type { Source } from "../support/Contract.ts"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** A `url` that a caller writes: a slug on the ingress host, beside the URL that the source has by its id. */

let slugs = 0
const newSlug = (): string => `orders-${++slugs}`

const it = gatewayIt
  .extend(
    "urlOf",
    ({ gateway }) =>
      (slug: string): string =>
        `http://localhost:${gateway.port}/e/${slug}`
  )
  .extend(
    "create",
    ({ gateway }) =>
      (fields: Record<string, unknown> = {}): Promise<Source> =>
        gateway.api("POST", "/sources", { name: gateway.name("source"), ...fields })
  )
  .extend(
    "patch",
    ({ gateway }) =>
      (source: Source, fields: Record<string, unknown>): Promise<Source> =>
        gateway.api("PATCH", `/sources/${source.id}`, fields)
  )
  .extend(
    "post",
    ({ gateway }) =>
      async (path: string, body = "{}", headers: ReadonlyArray<readonly [string, string]> = []) => {
        const answer = await request(gateway.port, {
          path: `/e/${path}`,
          headers: [["Content-Type", "application/json"], ...headers],
          body
        })
        return { status: answer.status, body: answer.body === "" ? null : JSON.parse(answer.body) }
      }
  )
  .extend(
    "pathsOf",
    ({ gateway }) =>
      async (source: Source): Promise<ReadonlyArray<string>> =>
        (await gateway.requests(source.id)).map(({ path }) => path)
  )

describe("Slug", () => {
  it("A slug is a second URL of a source, which shows it and keeps the URL with its id", async ({
    create,
    gateway,
    pathsOf,
    post,
    urlOf
  }) => {
    const slug = newSlug()
    const source = await create({ url: urlOf(slug) })
    expect(source.url).toBe(urlOf(slug))
    expect((await gateway.api("GET", `/sources/${source.id}`)).url).toBe(urlOf(slug))
    for (const [path, status] of [
      [`${slug}/a?x=1`, 200],
      [`${source.id}/b`, 200],
      [`${slug}-x/c`, 404],
      [`${slug.toUpperCase()}/d`, 404],
      [slug.slice(0, 2), 404]
    ] as const) {
      expect((await post(path)).status, path).toBe(status)
    }
    expect(await pathsOf(source)).toEqual(["/a", "/b"])
    expect((await gateway.requests(source.id))[0].query).toBe("x=1")
  })

  it("A slug is kept when the record is written back and removed by null", async ({
    create,
    gateway,
    patch,
    post,
    urlOf
  }) => {
    const slug = newSlug()
    const source = await create({ url: urlOf(slug) })
    expect((await gateway.api("PUT", `/sources/${source.id}`, source)).url).toBe(urlOf(slug))
    expect((await patch(source, { description: "x" })).url).toBe(urlOf(slug))
    const bare = await patch(source, { url: null })
    expect(bare.url).toBe(urlOf(source.id))
    expect((await post(slug)).status).toBe(404)
    expect((await post(source.id)).status).toBe(200)
    expect((await gateway.api("PUT", `/sources/${source.id}`, bare)).url).toBe(bare.url)
  })

  it("A slug belongs to one source, and others get 409 until it is removed or the source is deleted", async ({
    create,
    gateway,
    patch,
    pathsOf,
    post,
    urlOf
  }) => {
    const slug = newSlug()
    const holder = await create({ url: urlOf(slug) })
    const other = await create()
    const name = gateway.name("source")
    for (const answer of [
      await gateway.call("POST", "/sources", { name, url: urlOf(slug) }),
      await gateway.call("PUT", "/sources", { name, url: urlOf(slug) }),
      await gateway.call("PATCH", `/sources/${other.id}`, { url: urlOf(slug) })
    ]) {
      expect(answer).toMatchObject({
        status: 409,
        body: { code: "RESOURCE_ALREADY_EXISTS", data: { id: holder.id, resource_type: "source" } }
      })
    }
    await gateway.api("DELETE", `/sources/${holder.id}`)
    expect((await post(slug)).status).toBe(404)
    await patch(other, { url: urlOf(slug) })
    expect((await post(`${slug}/mine`)).status).toBe(200)
    expect(await pathsOf(other)).toEqual(["/mine"])
  })

  it("A slug requested by six sources at once goes to exactly one", async ({ gateway, urlOf }) => {
    const url = urlOf(newSlug())
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => gateway.call("POST", "/sources", { name: gateway.name("source"), url }))
    )
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409, 409, 409, 409, 409])
  })

  it("A conflict about a slug reveals nothing about the team that has it", async ({ create, gateway, urlOf }) => {
    const slug = newSlug()
    await gateway.sql(
      "insert into teams (id, name, created_at) select 'tm_other', 'other', now() on conflict do nothing"
    )
    await gateway.sql(
      `insert into sources (id, team_id, name, type, config, slug, created_at, updated_at)
       select 'src_01kaxg3j7qzfn8m4s2v6w9t5bc', 'tm_other', 'theirs', 'WEBHOOK', config, $2, now(), now()
       from sources where id = $1`,
      [(await create()).id, slug]
    )
    const { body, status } = await gateway.call("POST", "/sources", { name: gateway.name("source"), url: urlOf(slug) })
    expect([status, body.code, body.data.id]).toEqual([409, "RESOURCE_ALREADY_EXISTS", undefined])
    expect(JSON.stringify(body)).not.toContain("src_")
  })

  it("A slug at another address is refused", async ({ create, gateway, urlOf }) => {
    const other = await create()
    for (const url of ["https://elsewhere.test/e/orders", urlOf("Or"), urlOf("a/b"), other.url, `${other.url}/x`]) {
      const answer = await gateway.call("POST", "/sources", { name: gateway.name("source"), url })
      expect([answer.status, answer.body.data.fields[0].path], url).toEqual([400, "url"])
    }
  })
})

describe("Moved slug", () => {
  it("A moved slug applies to every request after the change returns, also where it was unknown before", async ({
    create,
    patch,
    pathsOf,
    post,
    urlOf
  }) => {
    const slug = newSlug()
    expect((await post(slug)).status).toBe(404)
    const first = await create({ url: urlOf(slug) })
    const second = await create()
    for (let round = 0; round < 5; round++) {
      const [from, to] = round % 2 === 0 ? [first, second] : [second, first]
      // Both snapshots are in the memory of ingress: one by its slug, and the other by its id.
      expect((await post(`${slug}/${from.id}/${round}`)).status).toBe(200)
      expect((await post(`${to.id}/${to.id}/own`)).status).toBe(200)
      await patch(from, { url: null })
      // In every other round its snapshot becomes new under its id, and still is not the slug's.
      if (round % 2 === 0) expect((await post(`${from.id}/${from.id}/own`)).status).toBe(200)
      expect((await post(slug)).status).toBe(404)
      await patch(to, { url: urlOf(slug) })
      expect((await post(`${slug}/${to.id}/${round}`)).status).toBe(200)
    }
    for (const source of [first, second]) {
      const paths = await pathsOf(source)
      expect(paths.length).toBeGreaterThan(5)
      expect(paths.filter((path) => !path.startsWith(`/${source.id}/`))).toEqual([])
    }
  })

  it("A moved slug loses and misroutes no request under load", async ({
    create,
    gateway,
    patch,
    pathsOf,
    post,
    urlOf
  }) => {
    const slug = newSlug()
    const [one, other] = [await create({ url: urlOf(slug) }), await create()]
    /** Whose the slug is, while no change is under way. */
    let owner: string | null = one.id
    /** A slow request may end when the slug has come back to whose it was. */
    let changes = 0
    const work = { done: false }
    const sent: Array<{ readonly path: string; readonly owner: string | null; readonly status: number }> = []
    let count = 0
    const sender = async () => {
      while (!work.done) {
        const [before, since] = [owner, changes]
        const path = `/${++count}`
        const { status } = await post(slug + path)
        // Only when nothing changed while it was under way is there one right answer.
        sent.push({ path, owner: since === changes ? before : null, status })
      }
    }
    const move = async (): Promise<void> => {
      for (let round = 0; round < 12; round++) {
        const [from, to] = round % 2 === 0 ? [one, other] : [other, one]
        owner = null
        changes++
        await patch(from, { url: null })
        await patch(to, { url: urlOf(slug) })
        owner = to.id
        const until = count + 12
        await gateway.eventually("requests to the new owner", async () => (count >= until ? true : null))
      }
    }
    await Promise.all([...Array.from({ length: 6 }, sender), move().finally(() => (work.done = true))])
    const stored = new Map<string, string>()
    for (const source of [one, other]) for (const path of await pathsOf(source)) stored.set(path, source.id)
    for (const { owner, path, status } of sent) {
      expect([200, 404]).toContain(status)
      expect(stored.has(path), path).toBe(status === 200)
      if (owner !== null) expect([status, stored.get(path)], path).toEqual([200, owner])
    }
    expect(sent.filter(({ owner }) => owner !== null).length).toBeGreaterThan(60)
  })

  it("A secret announced to a moved slug is stored only for the new source", async ({
    create,
    gateway,
    patch,
    post,
    urlOf
  }) => {
    const slug = newSlug()
    const first = await create({ type: "ASANA", url: urlOf(slug) })
    const second = await create({ type: "ASANA" })
    // Cached by the slug, without a secret: an unsigned request is refused.
    expect((await post(slug)).status).toBe(401)
    await patch(first, { url: null })
    await patch(second, { url: urlOf(slug) })
    const secret = "announced-secret-1234"
    expect((await post(slug, "{}", [["X-Hook-Secret", secret]])).status).toBe(200)
    const authOf = async (source: Source) => (await gateway.api("GET", `/sources/${source.id}`)).config.auth
    expect(await authOf(first)).toEqual({})
    expect(await authOf(second)).toEqual({ webhook_secret_key: "****1234" })
    const signature = createHmac("sha256", secret).update("{}").digest("hex")
    expect((await post(slug, "{}", [["X-Hook-Signature", signature]])).status).toBe(200)
    expect((await post(first.id, "{}", [["X-Hook-Signature", signature]])).status).toBe(401)
  })
})
