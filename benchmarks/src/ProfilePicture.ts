/**
 * `node benchmarks/src/ProfilePicture.ts <picture.svg> <name>=<file.cpuprofile>:<events>:<seconds> …`: where the CPU of an event goes in each of
 * these profiles, as a picture: one bar for each profile, in µs an event, with a part for each kind of work. `seconds`: only the last seconds of the
 * profile count, in which it had these events.
 */
import { writeFileSync } from "node:fs"
import { type CpuProfile, readProfile } from "./Profile.ts"

/** A kind of work, and the part of a frame's URL by which it is recognized; the first match from the frame upwards counts. */
const kinds: ReadonlyArray<{ readonly name: string; readonly color: string; readonly urls: ReadonlyArray<string> }> = [
  {
    name: "PostgreSQL client",
    color: "#3b6fb6",
    urls: ["@effect/sql-pg", "packages/storage/src/journal", "effect/dist/sql"]
  },
  { name: "call to the target", color: "#c9772b", urls: ["undici", "packages/egress", "packages/connectors"] },
  { name: "delivery queue", color: "#e3b34f", urls: ["packages/entities"] },
  {
    name: "sender's request and answer",
    color: "#4f9d69",
    urls: ["packages/ingress", "node:_http", "packages/rules", "packages/verification", "packages/model"]
  },
  { name: "Effect runtime", color: "#8862a8", urls: ["node_modules/effect"] },
  { name: "telemetry", color: "#b0567c", urls: ["packages/telemetry"] }
]
const collector = { name: "garbage collection", color: "#7d8590" }
const compiling = { name: "loading and compiling code", color: "#a9b1ba" }
const rest = { name: "everything else", color: "#d3d7db" }

/** System calls that write to a socket. They are the darker half of their kind. */
const writes = new Set(["writeLatin1String", "writeUtf8String", "writeBuffer", "writev", "writeAsciiString"])

/** One part of a bar: microseconds an event. */
export interface Part {
  readonly name: string
  readonly color: string
  readonly micros: number
}

interface Node {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string }
  readonly children?: ReadonlyArray<number>
}

/** The CPU of one event by kind of work, in the order of the kinds. */
export const partsOf = (profile: CpuProfile, events: number, seconds = Infinity): ReadonlyArray<Part> => {
  let left = profile.timeDeltas.reduce((sum, took) => sum + took, 0)
  const nodes = profile.nodes as ReadonlyArray<Node>
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const parents = new Map(nodes.flatMap(({ children = [], id }) => children.map((child) => [child, id] as const)))
  const micros = new Map<string, number>()
  const colors = new Map<string, string>()
  const add = ({ color, name }: { readonly name: string; readonly color: string }, of: number): void => {
    colors.set(name, color)
    micros.set(name, (micros.get(name) ?? 0) + of)
  }
  const kindAt = (id: number | undefined): (typeof kinds)[number] | typeof compiling | typeof rest => {
    for (let at = id; at !== undefined; at = parents.get(at)) {
      const { url } = byId.get(at)!.callFrame
      if (/node:internal\/(?:modules|deps\/(?:amaro|cjs))/.test(url)) return compiling
      const kind = kinds.find(({ urls }) => urls.some((part) => url.includes(part)))
      if (kind !== undefined) return kind
    }
    return rest
  }
  for (const [index, id] of profile.samples.entries()) {
    const took = profile.timeDeltas[index + 1] ?? 0
    left -= took
    if (left > seconds * 1_000_000) continue
    const { functionName } = byId.get(id)!.callFrame
    if (functionName === "(idle)" || functionName === "(root)") continue
    if (functionName === "(garbage collector)") add(collector, took)
    else {
      const kind = kindAt(id)
      if (writes.has(functionName)) add({ name: `${kind.name}: writes`, color: darker(kind.color) }, took)
      else add(kind, took)
    }
  }
  const order = [...kinds, collector, compiling, rest].flatMap(({ name }) => [name, `${name}: writes`])
  return order
    .filter((name) => micros.has(name))
    .map((name) => ({ name, color: colors.get(name)!, micros: micros.get(name)! / events }))
}

const darker = (color: string): string =>
  `#${[1, 3, 5]
    .map((at) =>
      Math.round(Number.parseInt(color.slice(at, at + 2), 16) * 0.65)
        .toString(16)
        .padStart(2, "0")
    )
    .join("")}`

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

/** The bars under each other, on one scale, and the names of the parts below. */
export const picture = (
  bars: ReadonlyArray<{ readonly name: string; readonly parts: ReadonlyArray<Part> }>
): string => {
  const width = 900
  const left = 190
  const sums = bars.map(({ parts }) => parts.reduce((sum, { micros }) => sum + micros, 0))
  const scale = (width - left - 80) / Math.max(...sums)
  const text = (x: number, y: number, content: string, more = ""): string =>
    `<text x="${x.toFixed(1)}" y="${y}" ${more}>${escaped(content)}</text>`
  const drawn = bars.map(({ name, parts }, index) => {
    const y = 16 + index * 44
    let x = left
    const rects = parts.map(({ color, micros }) => {
      const wide = micros * scale
      const label =
        wide > 30
          ? text(
              x + wide / 2,
              y + 19,
              micros.toFixed(0),
              `text-anchor="middle" fill="${color === rest.color ? "#1f2328" : "#fff"}"`
            )
          : ""
      const rect = `<rect x="${x.toFixed(1)}" y="${y}" width="${wide.toFixed(1)}" height="28" fill="${color}"/>${label}`
      x += wide
      return rect
    })
    return (
      text(left - 8, y + 19, name, 'text-anchor="end"') +
      rects.join("") +
      text(x + 6, y + 19, `${sums[index]!.toFixed(0)} µs`)
    )
  })
  const legend = new Map(bars.flatMap(({ parts }) => parts.map(({ color, name }) => [name, color] as const)))
  const top = 28 + bars.length * 44
  const names = [...legend].map(([name, color], index) => {
    const [x, y] = [16 + (index % 3) * 295, top + Math.floor(index / 3) * 22]
    return `<rect x="${x}" y="${y}" width="12" height="12" fill="${color}"/>${text(x + 18, y + 11, name)}`
  })
  const height = top + Math.ceil(legend.size / 3) * 22 + 8
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="13" fill="#1f2328">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...drawn,
    ...names,
    "</svg>",
    ""
  ].join("\n")
}

if (import.meta.main) {
  const [path, ...given] = process.argv.slice(2)
  const bars = given.map((one) => {
    const [, name = "", file = "", events = "", seconds = ""] = /^(.*)=(.*):(\d+):(\d+)$/.exec(one) ?? []
    return { name, parts: file === "" ? [] : partsOf(readProfile(file), Number(events), Number(seconds)) }
  })
  if (path === undefined || bars.length === 0 || bars.some(({ parts }) => parts.length === 0)) {
    console.error(
      "usage: node benchmarks/src/ProfilePicture.ts <picture.svg> <name>=<file.cpuprofile>:<events>:<seconds> …"
    )
    process.exitCode = 2
  } else writeFileSync(path, picture(bars))
}
