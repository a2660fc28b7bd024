import { createServer } from "node:net"
import { join } from "node:path"
import { Effect, Redacted, type Scope } from "effect"
import { describe, expect, it } from "vitest"
import { freshDatabase } from "../postgres.ts"
import { freePort } from "../support/Ports.ts"
import { query } from "../support/sql.ts"
import { Supervised } from "../support/Supervised.ts"
import { waitUntil } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"

/** A gateway of several processes that does not outlive its test. */
const starting = (settings: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const home = join(yield* temporaryFolder, "home")
    return yield* Effect.acquireRelease(
      Effect.promise(() => Supervised.spawn(home, settings)),
      (gateway) => Effect.promise(() => gateway.close())
    )
  })

const within = (test: Effect.Effect<void, unknown, Scope.Scope>) => () => Effect.runPromise(Effect.scoped(test))

const runs = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe("Several processes of one start", () => {
  it(
    "Three processes share connections evenly, write one log, show the metrics of all, and all end with SIGTERM",
    within(
      Effect.gen(function* () {
        const DATABASE_URL = Redacted.value(yield* freshDatabase)
        const gateway = yield* starting({ TIDEGATE_PROCESSES: "3", DATABASE_URL })
        yield* Effect.promise(async () => {
          await gateway.ready(3)
          expect(gateway.readyPids).toHaveLength(3)
          const source = await gateway.source()
          for (let sent = 0; sent < 30; sent++) await gateway.call("POST", `/e/${source}`, { sent })
          const { text } = await gateway.call("GET", "/metrics")
          const accepted = [...text.matchAll(/^tidegate_requests_total\{process="(\d)",outcome="accepted"\} (\d+)$/gm)]
          expect(accepted.map(([, id, count]) => [id, Number(count)])).toEqual([
            ["1", 10],
            ["2", 10],
            ["3", 10]
          ])
          expect(text.match(/^# TYPE tidegate_requests_total /gm)).toHaveLength(1)
          expect(gateway.said.match(/Tidegate is running/g)).toHaveLength(1)
          const lines = gateway.said.split("\n").filter((line) => line.startsWith("{"))
          const numbers = new Set(lines.map((line) => (JSON.parse(line) as { process: number }).process))
          expect(numbers).toEqual(new Set([0, 1, 2, 3]))
          gateway.child.kill("SIGTERM")
          expect(await gateway.ended).toBe(130)
          expect(gateway.readyPids.filter(runs)).toEqual([])
        })
      })
    )
  )

  it(
    "A process that is killed under traffic loses no accepted request, and is replaced",
    within(
      Effect.gen(function* () {
        const DATABASE_URL = Redacted.value(yield* freshDatabase)
        const gateway = yield* starting({ TIDEGATE_PROCESSES: "2", DATABASE_URL })
        yield* Effect.promise(async () => {
          await gateway.ready(2)
          const source = await gateway.source()
          const senders = gateway.send(source)
          await waitUntil("requests were accepted", () => senders.accepted.length > 100)
          process.kill(gateway.readyPids[1]!, "SIGKILL")
          await gateway.ready(3)
          const before = senders.accepted.length
          await waitUntil("more requests are accepted", () => senders.accepted.length > before + 100)
          await senders.stop()
          const rows = await query(DATABASE_URL, "select id from requests where source_id = $1", [source])
          const stored = new Set(rows.map(({ id }) => id))
          expect(senders.accepted.filter((id) => !stored.has(id))).toEqual([])
          expect(gateway.said).toMatch(/process \d \(pid \d+\) has ended: SIGKILL/)
          expect((await gateway.call("GET", "/readyz")).status).toBe(200)
        })
      })
    )
  )

  it(
    "SIGHUP replaces all processes beside an embedded database, and no request is refused",
    within(
      Effect.gen(function* () {
        const gateway = yield* starting({ TIDEGATE_PROCESSES: "2" })
        yield* Effect.promise(async () => {
          await gateway.ready(2)
          const old = gateway.readyPids
          const senders = gateway.send(await gateway.source())
          await waitUntil("requests were accepted", () => senders.accepted.length > 100)
          gateway.child.kill("SIGHUP")
          await gateway.ready(4)
          await waitUntil("the old processes have ended", () => !old.some(runs))
          await senders.stop()
          expect(senders.failed).toEqual([])
          expect((await gateway.call("GET", "/readyz")).status).toBe(200)
        })
      })
    )
  )

  it(
    "SIGHUP that comes before a killed process is replaced leaves as many processes as there were",
    within(
      Effect.gen(function* () {
        const DATABASE_URL = Redacted.value(yield* freshDatabase)
        const gateway = yield* starting({ TIDEGATE_PROCESSES: "2", DATABASE_URL })
        yield* Effect.promise(async () => {
          await gateway.ready(2)
          process.kill(gateway.readyPids[1]!, "SIGKILL")
          await waitUntil("the end is noticed", () => gateway.said.includes("has ended: SIGKILL"))
          gateway.child.kill("SIGHUP")
          await gateway.ready(4)
          await waitUntil("two processes are there", () => gateway.readyPids.filter(runs).length === 2)
        })
      })
    )
  )

  it(
    "A process that is frozen is killed and replaced after 30 seconds",
    within(
      Effect.gen(function* () {
        const DATABASE_URL = Redacted.value(yield* freshDatabase)
        const gateway = yield* starting({ TIDEGATE_PROCESSES: "2", DATABASE_URL })
        yield* Effect.promise(async () => {
          await gateway.ready(2)
          const source = await gateway.source()
          const frozen = gateway.readyPids[1]!
          process.kill(frozen, "SIGSTOP")
          await gateway.ready(3)
          expect(gateway.said).toMatch(
            new RegExp(`process \\d \\(pid ${frozen}\\) has not answered for 30 s, and is killed`)
          )
          expect(runs(frozen)).toBe(false)
          // Both of those that are there now answer.
          for (let sent = 0; sent < 10; sent++) {
            expect((await gateway.call("POST", `/e/${source}`, { sent })).status).toBe(200)
          }
        })
      })
    )
  )

  it(
    "A process that is frozen does not hold up the end of all",
    within(
      Effect.gen(function* () {
        const DATABASE_URL = Redacted.value(yield* freshDatabase)
        const gateway = yield* starting({ TIDEGATE_PROCESSES: "2", DATABASE_URL })
        yield* Effect.promise(async () => {
          await gateway.ready(2)
          process.kill(gateway.readyPids[1]!, "SIGSTOP")
          gateway.child.kill("SIGTERM")
          expect(await gateway.ended).toBe(130)
          expect(gateway.readyPids.filter(runs)).toEqual([])
        })
      })
    )
  )

  it(
    "A port that is taken, a number of processes that is none, or a home that cannot be made, ends the start with one sentence",
    within(
      Effect.gen(function* () {
        const PORT = String(yield* Effect.promise(freePort))
        yield* Effect.acquireRelease(
          Effect.promise(() => {
            const server = createServer()
            return new Promise<typeof server>((resolve) =>
              server.listen(Number(PORT), "127.0.0.1", () => resolve(server))
            )
          }),
          (server) => Effect.sync(() => server.close())
        )
        const DATABASE_URL = Redacted.value(yield* freshDatabase)
        const taken = yield* starting({ TIDEGATE_PROCESSES: "2", DATABASE_URL, PORT })
        const wrong = yield* starting({ TIDEGATE_PROCESSES: "many", DATABASE_URL })
        const homeless = yield* starting({ TIDEGATE_PROCESSES: "2", TIDEGATE_HOME: "/proc/tidegate/home" })
        yield* Effect.promise(async () => {
          expect(await taken.ended).toBe(1)
          expect(taken.complained).toBe(
            `tidegate: PORT: another process listens at 127.0.0.1:${PORT}, perhaps a gateway that runs already; end it, or set another PORT\n`
          )
          expect(await homeless.ended).toBe(1)
          expect(homeless.complained).toMatch(
            /^tidegate: TIDEGATE_HOME: the folder \/proc\/tidegate\/home cannot be made \(\w+\); it must be one that this user may write to\n$/
          )
          expect(await wrong.ended).toBe(1)
          expect(wrong.complained).toBe("tidegate: TIDEGATE_PROCESSES must be auto, or a whole number from 1 to 32\n")
        })
      })
    )
  )
})
