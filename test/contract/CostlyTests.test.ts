import { describe, expect } from "vitest"
import type { Body } from "../support/Gateway.ts"
import { it as gatewayIt } from "../support/it.ts"
import { heldMs, leastMsOf, timesSlower, watchedLoop } from "../support/LoopHeld.ts"
import { watch } from "../support/Watch.ts"

/** Tests of workflows near all of their bounds, as many at once as there are places, and more. */

const it = gatewayIt.extend("settings", { scope: "file" }, watchedLoop)

const mebi = 1024 * 1024
const perTeam = 4
const inAll = 16
const teams = 6
/** Above what the gateway has idle: the places, with a request of 10 MiB, what it is parsed to, and outputs of 10 MiB each. */
const maxMb = 1_600
/** The promise is 50 ms of an idle machine; what is measured has all else in it that the loop does between two looks, collecting garbage too. */
const boundMs = (): number => 400 * timesSlower()

const edge = (source: string | null, target: string) => ({
  source_type: source === null ? "trigger" : "step",
  source_step_id: source,
  target_step_id: target
})

/** Nine steps that give a megabyte each, of a request of ten. */
const names = Array.from({ length: 9 }, (_, n) => `step_${n}`)
const steps = names.map((id, n) => ({
  id,
  kind: "destination",
  invocation_inputs: { body: `{{trigger.body.parts[${n}]}}` }
}))
const edges = names.map((id, n) => edge(n === 0 ? null : names[n - 1]!, id))

describe("Costly workflow tests", () => {
  it("Costly workflow tests stay within their limit and delay nobody, and others are asked to retry", async ({
    gateway
  }) => {
    const plain = await gateway.source()
    const sessions: Array<{ readonly owner: string; readonly request_id: string; readonly destination: string }> = []
    const body = JSON.stringify({ parts: Array.from({ length: 10 }, (_, n) => String(n).repeat(mebi - 65_536)) })
    for (let n = 0; n < teams; n++) {
      const team = gateway.name("tm_costly")
      await gateway.sql("insert into teams (id, name) values ($1, $1)", [team])
      const owner = await gateway.session("owner", team)
      const call = async (method: string, path: string, body: object): Promise<Body> => {
        const answer = await gateway.call(method, path, body, owner)
        expect(answer.status, JSON.stringify(answer.body)).toBe(200)
        return answer.body
      }
      const source = await call("POST", "/sources", { name: "source" })
      const destination = await call("POST", "/destinations", { name: "mock", type: "MOCK_API" })
      await call("POST", "/connections", { name: "c", source_id: source.id, destination_id: destination.id })
      const posted = await fetch(`${gateway.origin}/e/${source.id}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body
      })
      expect(posted.status).toBe(200)
      sessions.push({ owner, request_id: ((await posted.json()) as Body).request_id, destination: destination.id })
    }
    const tested = async (): Promise<number> => {
      await heldMs()
      const answers: Array<{ readonly status: number; readonly body: Body }> = []
      const watched = await watch({ pid: gateway.pid, port: gateway.port, path: `/e/${plain.id}` }, async () => {
        const asked = sessions.flatMap(({ destination, owner, request_id }) =>
          Array.from({ length: 2 * perTeam }, async (_, n) => {
            const answer = await gateway.call(
              "POST",
              "/workflows/test",
              {
                mode: n % 2 === 0 ? "dry_run" : "live",
                request_id,
                steps: steps.map((step) => Object.assign({ resource_id: destination }, step)),
                edges
              },
              owner
            )
            answers.push(answer)
          })
        )
        await Promise.all(asked)
      })
      const held = await heldMs()
      expect(answers).toHaveLength(teams * 2 * perTeam)
      for (const { body, status } of answers) {
        if (status === 200) {
          expect(body.test).toBe(true)
          // What a target answers beside what it was sent may be more than a step may give.
          expect([null, "OUTPUT_TOO_LARGE"]).toContain(body.error_code)
        } else expect([status, body.code]).toEqual([503, "QUEUE_UNAVAILABLE"])
      }
      expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(inAll)
      expect(watched.refused).toBe(0)
      expect(watched.peakMb - watched.idleMb).toBeLessThan(maxMb)
      return held.processorMs
    }
    expect(await leastMsOf(boundMs, tested)).toBeLessThan(boundMs())
  })
})
