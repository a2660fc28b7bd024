import { expect } from "vitest"
import { type Table, tables } from "../../packages/storage/src/Tables.ts"
import { it } from "../support/it.ts"
import { hanging } from "../support/Target.ts"
import { patience } from "../support/Waiting.ts"
import { begin, edge } from "./workflowRuns.ts"

/** A team with deliveries and runs under way is deleted, and the process is killed meanwhile. */

it(
  "A deleted team stops at once, and is gone from every table although the process is killed",
  { timeout: 6 * patience },
  async ({ gateway, target }) => {
    const doomed = await gateway.forTeam()
    const owner = await doomed.session("owner")
    const month = { id: "wait", kind: "delay", config: { mode: "for", amount: 30, unit: "days" } }
    const { post } = await begin(doomed, [month], [edge(null, "wait")])
    await post()
    target.reply = (response) => void response.writeHead(500).end()
    const { source } = await doomed.route(target, {
      rules: [{ type: "retry", strategy: "linear", interval: 3_600_000, count: 5 }]
    })
    const send = () => fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: '{"who":"ada@example.com"}' })
    expect((await send()).status).toBe(200)
    await target.next(1)
    target.reply = hanging
    expect((await send()).status).toBe(200)
    await target.next(2)
    const neighbour = await gateway.route(target)

    const asked = await doomed.call("POST", "/team/deletion", { team_id: doomed.team, team_name: doomed.team }, owner)
    expect([asked.status, asked.body.stage]).toEqual([202, "stopping"])
    expect((await send()).status).toBe(404)
    expect((await doomed.call("GET", "/sources")).body.code).toBe("INVALID_API_KEY")
    await gateway.restart("SIGKILL")

    const done = await gateway.eventually("the deletion is done", async () => {
      // The minute in which what was under way comes to its end: here the process was killed, and nothing is.
      await gateway.sql("update team_deletions set pass_at = now() where stage = 'checking' and pass_at > now()")
      const [row] = await gateway.sql("select stage, deleted from team_deletions where id = $1", [doomed.team])
      return row.stage === "done" ? row : null
    })
    expect(done.deleted).toMatchObject({
      requests: 3,
      events: 2,
      attempts: 1,
      workflow_runs: 1,
      teams: 1
    })
    for (const [name, { team }] of Object.entries<Table>(tables)) {
      if (team === null) continue
      const left = await gateway.sql(`select count(*)::int4 as rows from ${name} where ${team} = $1`, [doomed.team])
      expect([name, left[0].rows]).toEqual([name, 0])
    }
    // Neither the retry nor the delivery that the killed process had begun was sent again.
    expect(target.received.length).toBe(2)
    expect((await send()).status).toBe(404)
    target.reset()
    const others = await fetch(`${gateway.origin}/e/${neighbour.source.id}`, { method: "POST", body: "{}" })
    expect(others.status).toBe(200)
    await target.next(1)
  }
)
