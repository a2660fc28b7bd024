import { readFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { meanwhile } from "./Meanwhile.ts"
import { patience, sleep } from "./Waiting.ts"

/** The memory of a process in MB. Only on systems with /proc. */
export const memoryOf = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024

/** The processor time that a process has used, in seconds. */
export const processorOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ")
  // User and system time in ticks. Linux reports 100 ticks a second to programs.
  return (Number(fields[11]) + Number(fields[12])) / 100
}

export interface Watched {
  readonly processorSeconds: number
  readonly idleMb: number
  readonly peakMb: number
  /** The response times of a plain sender, ascending, in ms. `refused`: the answers other than 200. */
  readonly answersMs: ReadonlyArray<number>
  readonly refused: number
}

/** Measures a gateway's memory and the answers to a plain sender, which sends one request after the other, while `work` runs. */
export const watch = async (
  gateway: { readonly pid: number; readonly port: number; readonly path: string },
  work: () => Promise<unknown>
): Promise<Watched> => {
  const idleMb = memoryOf(gateway.pid)
  const processorBefore = processorOf(gateway.pid)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const answersMs: Array<number> = []
  let peakMb = idleMb
  let refused = 0
  const post = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const sent = request(
        { port: gateway.port, host: "127.0.0.1", path: gateway.path, method: "POST", agent },
        (response) => response.resume().once("end", () => resolve(response.statusCode!))
      )
      sent.once("error", reject).setTimeout(patience, () => sent.destroy(new Error(`no answer within ${patience} ms`)))
      sent.end("plain")
    })
  await meanwhile(async () => {
    const from = performance.now()
    if ((await post()) !== 200) refused++
    answersMs.push(performance.now() - from)
    peakMb = Math.max(peakMb, memoryOf(gateway.pid))
    await sleep(20)
  }, work)
  agent.destroy()
  const processorSeconds = processorOf(gateway.pid) - processorBefore
  return { processorSeconds, idleMb, peakMb, answersMs: answersMs.toSorted((a, b) => a - b), refused }
}
