import { randomUUID } from "node:crypto"
import { describe, expect } from "vitest"
import type { Gateways } from "../support/Gateways.ts"
import { it as gatewayIt } from "../support/it.ts"
import { sleep, waitUntil } from "../support/Waiting.ts"

type Name = "owner" | "left" | "right"
const roles = { owner: "runner", left: "edge", right: "edge" } as const
const edges = ["left", "right"] as const

const it = gatewayIt
  .extend("cluster", { scope: "file" }, ({ fileRunning }) => fileRunning(roles))
  .extend("gateways", ({ cluster }) => cluster.everyRunning())

/** A source with a limit by the hour, and two edge processes that its senders use alternately. */
class Senders {
  readonly accepted: Array<string> = []
  #next = 0
  readonly #gateways: Gateways<Name>
  readonly #source: string

  constructor(gateways: Gateways<Name>, source: string) {
    this.#gateways = gateways
    this.#source = source
  }

  static async make(gateways: Gateways<Name>, rate_limit: number): Promise<Senders> {
    const config = { rate_limit, rate_limit_period: "hour" as const }
    const { id } = await gateways.api("left", "POST", "/sources", { name: `limited-${randomUUID()}`, config })
    return new Senders(gateways, id)
  }

  /** Sends one request to the next edge process. Returns how many seconds to wait, or 0. */
  async send(): Promise<number> {
    const edge = edges[this.#next++ % edges.length]!
    const { body, status } = await this.#gateways.call(edge, "POST", `/e/${this.#source}`, { body: "{}" })
    const answer = JSON.parse(body) as { readonly request_id: string; readonly message: string }
    if (status === 200) this.accepted.push(answer.request_id)
    else expect(status, body).toBe(429)
    return status === 200 ? 0 : Number(/after (\d+) s/.exec(answer.message)?.[1])
  }

  /** Until so many more are accepted. */
  async accept(more: number): Promise<void> {
    const until = this.accepted.length + more
    await waitUntil(`${more} more are accepted`, async () => {
      while (this.accepted.length < until) if ((await this.send()) > 0) return false
      return true
    })
  }

  /** Sends until both edge processes say that the period has nothing left, and say so again after their next lease. */
  async useUp(): Promise<void> {
    for (let turn = 0; turn < 3; turn++) {
      let spent = 0
      await waitUntil("nothing is left at either edge", async () => {
        for (let sent = 0; spent < 2 && sent < 50; sent++) spent = (await this.send()) > 1 ? spent + 1 : 0
        return spent >= 2
      })
      await sleep(600)
    }
  }

  /** What was answered with 2xx and is not there. */
  async lost(): Promise<ReadonlyArray<string>> {
    const rows = await this.#gateways.query("select id from requests where source_id = $1 and status = 'accepted'", [
      this.#source
    ])
    const stored = new Set(rows.map(({ id }) => id))
    return this.accepted.filter((id) => !stored.has(id))
  }
}

describe("Rate limit of a source", () => {
  it("A source's rate limit is shared by two ingress processes", async ({ gateways }) => {
    const senders = await Senders.make(gateways, 400)
    await senders.useUp()
    expect(senders.accepted.length).toBeGreaterThanOrEqual(400 - 50)
    expect(senders.accepted.length).toBeLessThanOrEqual(400 + 50)
    expect(await senders.lost()).toEqual([])
  })

  it("A source's rate limit holds while its actor is away and after another process takes it over", async ({
    gateways
  }) => {
    const senders = await Senders.make(gateways, 400)
    await senders.accept(100)
    await gateways.process("owner").end("SIGKILL")
    // No runner: the edge processes go on with their last leases.
    await senders.accept(60)
    await gateways.process("owner").start()
    await senders.useUp()
    expect(senders.accepted.length).toBeGreaterThanOrEqual(400 - 3 * 50)
    expect(senders.accepted.length).toBeLessThanOrEqual(400 + 50)
    expect(await senders.lost()).toEqual([])
  })

  it("Without any runner each ingress process may use a source's whole rate limit", async ({ gateways }) => {
    const senders = await Senders.make(gateways, 40)
    await gateways.process("owner").end("SIGKILL")
    await senders.accept(40)
    await senders.useUp()
    expect(senders.accepted.length).toBeLessThanOrEqual(edges.length * 40)
    expect(await senders.lost()).toEqual([])
  })
})
