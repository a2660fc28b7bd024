/** `node benchmarks/src/Profile.ts <file.cpuprofile> [rows]`: the functions in which a CPU profile spent its time. */
import { readFileSync } from "node:fs"

/** The parts of the .cpuprofile format that are needed for self time. Times are microseconds. */
export interface CpuProfile {
  readonly nodes: ReadonlyArray<{
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  }>
  readonly samples: ReadonlyArray<number>
  readonly timeDeltas: ReadonlyArray<number>
}

/** One function: its self time in milliseconds, and its share of the time in which the process was not idle. */
export interface SelfTime {
  readonly name: string
  readonly place: string
  readonly millis: number
  readonly share: number
}

/** Frames to which V8 assigns waiting, not work. */
const IDLE = new Set(["(idle)", "(root)"])

/** Functions by self time, largest first. A function that is reached over different stacks is one row. */
export const selfTimes = (profile: CpuProfile): ReadonlyArray<SelfTime> => {
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]))
  const rows = new Map<string, { name: string; place: string; micros: number }>()
  let busy = 0
  for (const [at, node] of profile.samples.entries()) {
    const frame = frames.get(node)
    if (frame === undefined || IDLE.has(frame.functionName)) continue
    // A delta is the time since the previous sample, so a sample's own time is the next delta.
    const micros = profile.timeDeltas[at + 1] ?? 0
    const name = frame.functionName || "(anonymous)"
    const place =
      frame.url === ""
        ? ""
        : `${frame.url.replace(/^.*\/(node_modules|packages|apps|benchmarks)\//, "$1/")}:${frame.lineNumber + 1}`
    const row = rows.get(`${name} ${place}`)
    if (row === undefined) rows.set(`${name} ${place}`, { name, place, micros })
    else row.micros += micros
    busy += micros
  }
  return Array.from(rows.values(), ({ name, place, micros }) => ({
    name,
    place,
    millis: micros / 1000,
    share: micros / busy
  })).sort((a, b) => b.millis - a.millis)
}

/** The first `rows` functions as text, one for each line. */
export const renderSelfTimes = (profile: CpuProfile, rows: number): string =>
  selfTimes(profile)
    .slice(0, rows)
    .map(
      ({ name, place, millis, share }) =>
        `${`${(share * 100).toFixed(1)}%`.padStart(6)} ${millis.toFixed(0).padStart(8)} ms  ${name}  ${place}`
    )
    .join("\n")

/** Reads a .cpuprofile file. */
export const readProfile = (path: string): CpuProfile => JSON.parse(readFileSync(path, "utf8")) as CpuProfile

if (import.meta.main) {
  const [path, rows] = process.argv.slice(2)
  if (path === undefined) {
    console.error("usage: node benchmarks/src/Profile.ts <file.cpuprofile> [rows]")
    process.exitCode = 2
  } else console.log(renderSelfTimes(readProfile(path), Number(rows ?? 40)))
}
