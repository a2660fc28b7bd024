import { expect } from "vitest"
import { gzipSync } from "node:zlib"
import type { ServerResponse } from "node:http"
import { ownIt as it } from "../support/it.ts"
import { saying } from "../support/Target.ts"
import { patience } from "../support/Waiting.ts"
import { begin, edge } from "./workflowRuns.ts"

/** A person's data is deleted while it waits for a retry, is being delivered, and is in a run; and the process is killed meanwhile. */

it(
  "A person's data is deleted from records, copies, queues and memory, and nothing of it is delivered any more",
  { timeout: 6 * patience },
  async ({ gateway, target }) => {
    const who = "ada@example.com"
    const { source } = await gateway.route(target, {
      rules: [{ type: "retry", strategy: "linear", interval: 3_600_000, count: 5 }]
    })
    const send = async (body: string | Buffer, headers: Record<string, string> = {}): Promise<string> => {
      const answer = await fetch(`${gateway.origin}/e/${source.id}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: Buffer.from(body)
      })
      expect(answer.status).toBe(200)
      return ((await answer.json()) as { readonly request_id: string }).request_id
    }
    const eventOf = async (request: string): Promise<string> => {
      const [row] = await gateway.sql("select id from events where request_id = $1", [request])
      return row.id
    }

    const other = await send('{"who":"eve@example.com"}')
    await target.next(1)
    const delivered = await send(gzipSync(JSON.stringify({ who })), { "content-encoding": "gzip" })
    await target.next(2)
    await gateway.settled()
    // Only the target's answer has the text.
    target.reply = saying(`hello ${who}`)
    const answered = await send('{"who":7}')
    await target.next(3)
    target.reply = (response) => void response.writeHead(500).end()
    const retried = await send(JSON.stringify({ who }))
    await target.next(4)
    await gateway.settled()
    const fixture = await gateway.api("POST", "/request-fixtures", { request_id: retried, name: "of a person" })
    const share = await gateway.api("POST", `/requests/${retried}/share`)
    const month = { id: "wait", kind: "delay", config: { mode: "for", amount: 30, unit: "days" } }
    const { post } = await begin(gateway, [month], [edge(null, "wait")])
    const run = await post({ body: JSON.stringify({ who }) })
    let held: ServerResponse | null = null
    target.reply = (response) => void (held = response)
    const underWay = await send(JSON.stringify({ who }))
    await target.next(5)
    const underWayEvent = await eventOf(underWay)

    const asked = await gateway.call("POST", "/data-deletions", { text: who })
    expect([asked.status, asked.body.stage]).toEqual([201, "searching"])
    expect(JSON.stringify(asked.body)).not.toContain(who)
    const path = `/data-deletions/${asked.body.id}`
    const inStage = (what: string, stages: ReadonlyArray<string>) =>
      gateway.eventually(
        what,
        async () => (await gateway.call("GET", path)).body,
        ({ stage }) => stages.includes(stage)
      )
    const plan = await inStage("the plan is complete", ["planned"])
    expect(plan.planned).toMatchObject({
      requests: 5,
      events: 4,
      attempts: 3,
      workflow_runs: 1,
      request_fixtures: 1,
      request_shares: 1
    })
    // What arrives before the confirmation is deleted as well.
    const late = await send(JSON.stringify({ late: who }))
    await target.next(6)
    const confirmed = await gateway.call("POST", `${path}/run`)
    expect([confirmed.status, confirmed.body.deleted]).toEqual([200, {}])

    await gateway.eventually("the rows are deleted", async () => {
      const [row] = await gateway.sql("select pass_at from data_deletions where id = $1", [asked.body.id])
      return row.pass_at
    })
    // A delivery that was under way comes to its end: its attempt is not stored.
    held!.writeHead(200).end(`bye ${who}`)
    for (const request of [delivered, answered, retried, underWay, late]) {
      expect((await gateway.call("GET", `/requests/${request}`)).status).toBe(404)
    }
    expect((await gateway.call("GET", `/events/${underWayEvent}`)).status).toBe(404)
    expect((await gateway.call("POST", `/events/${underWayEvent}/retry`)).status).toBe(404)
    expect((await gateway.call("POST", `/requests/${retried}/retry`)).status).toBe(404)
    expect((await gateway.call("GET", `/request-fixtures/${fixture.id}`)).status).toBe(404)
    expect((await fetch(`${gateway.origin}/v1/shares/request/${share.token}`)).status).toBe(404)
    expect((await gateway.call("GET", `/requests/${other}`)).status).toBe(200)
    await gateway.restart("SIGKILL")
    // The minute and a half in which what was under way comes to its end.
    await gateway.sql("update data_deletions set pass_at = now() where id = $1", [asked.body.id])
    const proof = await inStage("the deletion is done", ["done"])
    expect(proof.deleted).toMatchObject({
      requests: 6,
      events: 5,
      workflow_runs: 1,
      request_fixtures: 1,
      request_shares: 1
    })
    expect(proof).toMatchObject({ error: null, text_hash: expect.stringMatching(/^scrypt:/) })

    const hex = Buffer.from(who).toString("hex")
    const tables = await gateway.sql(
      `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`
    )
    for (const { name } of tables) {
      const [{ count }] = await gateway.sql(
        `select count(*)::int4 as count from ${name} r where strpos(r::text, $1) > 0 or strpos(r::text, $2) > 0`,
        [who, hex]
      )
      expect([name, count]).toEqual([name, 0])
    }
    expect((await gateway.sql("select id from workflow_runs where id = $1", [run])).length).toBe(0)
    target.reset()
    await send('{"who":"eve@example.com"}')
    const [next] = await target.next(1)
    expect(next!.body.toString()).toContain("eve@example.com")
  }
)
