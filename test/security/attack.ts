/**
 * `node test/security/attack.ts [attack...]`: attacks a gateway process of its own, on loopback, for a bounded time, and tells
 * what that cost it and a plain sender beside.
 *
 *   --seconds <n>      how long each attack lasts (30)
 *   --connections <n>  how many connections attack (8)
 *
 * Attacks: chunks, json; without any, all. Exits with 1 when the gateway grew by more than 400 MB, a plain sender waited for
 * more than 500 ms or was refused, a lease was lost, or the process ended.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { parseArgs } from "node:util"
import { GatewayProcess } from "../support/GatewayProcess.ts"
import { attackFrom, attacks } from "../support/Attacker.ts"
import { watch } from "../support/Watch.ts"

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string", default: "30" }, connections: { type: "string", default: "8" } }
})
const chosen = positionals.length === 0 ? Object.keys(attacks) : positionals
const unknown = chosen.filter((name) => !Object.hasOwn(attacks, name))
if (unknown.length > 0)
  throw new Error(`no attack is called ${unknown.join(", ")}; there are ${Object.keys(attacks).join(", ")}`)

const key = "gwk_attacked_gateway_key"
const leaseLost =
  /could not release shards|lease (?:was |is )?(?:lost|over|expired)|lost (?:its|the|a) (?:lease|lock|shard)/gi

/** One attack on a gateway that was started for it; what it says, and whether that is good enough. */
const hold = async (name: string): Promise<boolean> => {
  const folder = mkdtempSync(join(tmpdir(), "tidegate-attack-"))
  const gateway = await GatewayProcess.make("gateway", "all", folder, {
    TIDEGATE_HOME: join(folder, "home"),
    TIDEGATE_API_KEY: key
  })
  const create = async (resource: string, body: unknown): Promise<{ readonly id: string }> => {
    const response = await fetch(`${gateway.origin}/v1/${resource}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    if (!response.ok) throw new Error(`${resource}: ${response.status} ${await response.text()}`)
    return (await response.json()) as { readonly id: string }
  }
  try {
    await gateway.start()
    const plain = await create("sources", { name: "plain" })
    const attacked = await create("sources", { name: "attacked" })
    const destination = await create("destinations", { name: "nowhere", url: "http://127.0.0.1:9/" })
    await create("connections", {
      name: "filtered",
      source_id: attacked.id,
      destination_id: destination.id,
      rules: [{ type: "filter", body: { order: { total: { $gt: 100 } } } }]
    })
    // Code that has not run yet is slow, and idle is not what a process is in its first second.
    const quiet = { pid: gateway.pid!, port: gateway.port, path: `/e/${plain.id}` }
    const before = await watch(quiet, () => sleep(3_000))
    let toll = { answers: {} as Readonly<Record<string, number>>, bytes: 0 }
    const during = await watch(quiet, async () => {
      toll = await attackFrom({
        attack: name,
        port: gateway.port,
        path: `/e/${attacked.id}`,
        connections: Number(values.connections),
        seconds: Number(values.seconds),
        requests: null
      })
    })
    const lost = readFileSync(join(folder, "gateway.log"), "utf8").match(leaseLost)?.length ?? 0
    const ends = gateway.takeEnds()
    const grown = during.peakMb - before.idleMb
    const worst = during.answersMs.at(-1)!
    const waits = (sorted: ReadonlyArray<number>): string =>
      [0.5, 0.99]
        .map((part) => `p${part * 100} ${sorted[Math.floor(sorted.length * part)]!.toFixed(1)} ms, `)
        .join("") + `worst ${sorted.at(-1)!.toFixed(1)} ms`
    process.stdout.write(
      [
        `${name}: ${attacks[name]!.name}, ${values.connections} connections, ${values.seconds} s`,
        `  sent              ${(toll.bytes / 1e6).toFixed(0)} MB; answers ${JSON.stringify(toll.answers)}`,
        `  memory            ${before.idleMb.toFixed(0)} MB idle, at most ${grown.toFixed(0)} MB above`,
        `  a plain sender    ${during.answersMs.length} answers, ${during.refused} not 200; ${waits(during.answersMs)}`,
        `    without attack  ${waits(before.answersMs)}`,
        `  processor time    ${during.processorSeconds.toFixed(1)} s`,
        `  leases lost       ${lost}`,
        `  process           ${ends.length === 0 ? "lives" : ends.join("; ")}`,
        ""
      ].join("\n")
    )
    return grown <= 400 && worst <= 500 && during.refused === 0 && lost === 0 && ends.length === 0
  } finally {
    if (gateway.pid !== null) await gateway.end("SIGTERM")
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

let held = true
for (const name of chosen) held = (await hold(name)) && held
process.exit(held ? 0 : 1)
