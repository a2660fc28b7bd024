/** One sample of a metric. */
export interface Sample {
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
  readonly value: number
}

/** One metric: its type, its help, its samples. */
export interface Exposed {
  readonly type: string
  readonly help: string
  readonly samples: ReadonlyArray<Sample>
}

const metricName = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const labelName = /^[a-zA-Z_][a-zA-Z0-9_]*$/
const value = /^(?:NaN|[+-]Inf|[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)$/i

const fail = (line: string, why: string): never => {
  throw new Error(`${why}: ${JSON.stringify(line)}`)
}

const numberOf = (line: string, text: string): number => {
  if (!value.test(text)) fail(line, "no value")
  return text === "+Inf" ? Infinity : text === "-Inf" ? -Infinity : Number(text)
}

/** Parses `name{label="value",…} value`. Quoted values may contain any character, so they are read character by character. */
const sampleOf = (line: string): Sample => {
  const open = line.indexOf("{")
  const labels = new Map<string, string>()
  let at = open < 0 ? line.indexOf(" ") : open
  const name = line.slice(0, at)
  if (!metricName.test(name)) fail(line, "no name of a metric")
  if (open >= 0) {
    at++
    while (line[at] !== "}") {
      const equals = line.indexOf("=", at)
      const label = line.slice(at, equals)
      if (!labelName.test(label) || label.startsWith("__")) fail(line, "no name of a label")
      if (line[equals + 1] !== '"') fail(line, "a label's value is not quoted")
      if (labels.has(label)) fail(line, "a label twice")
      let text = ""
      for (at = equals + 2; line[at] !== '"'; at++) {
        if (at >= line.length) fail(line, "a label's value does not end")
        if (line[at] !== "\\") text += line[at]
        else text += { n: "\n", "\\": "\\", '"': '"' }[line[++at]!] ?? fail(line, "an unknown escape")
      }
      labels.set(label, text)
      at++
      if (line[at] === ",") at++
      else if (line[at] !== "}") fail(line, "labels are not separated")
    }
    at++
  }
  if (line[at] !== " ") fail(line, "no blank before the value")
  return { name, labels, value: numberOf(line, line.slice(at + 1)) }
}

/** The labels of a sample, in sorted order. */
const keyOf = ({ labels }: Sample, but = ""): string =>
  [...labels]
    .flatMap(([label, text]) => (label === but ? [] : [JSON.stringify([label, text])]))
    .toSorted((a, b) => (a < b ? -1 : 1))
    .join()

/** Checks that the buckets of a histogram rise to `+Inf`, that this bucket equals the count, and that each series has a sum. */
const checkHistogram = (name: string, samples: ReadonlyArray<Sample>): void => {
  const series = new Map<string, { bounds: Array<readonly [number, number]>; sum?: number; count?: number }>()
  for (const sample of samples) {
    const key = keyOf(sample, "le")
    const one = series.get(key) ?? { bounds: [] }
    series.set(key, one)
    if (sample.name === `${name}_sum`) one.sum = sample.value
    else if (sample.name === `${name}_count`) one.count = sample.value
    else if (sample.name === `${name}_bucket`) {
      const le = sample.labels.get("le") ?? fail(name, "a bucket without le")
      one.bounds.push([le === "+Inf" ? Infinity : Number(le), sample.value])
    } else fail(sample.name, `no sample of the histogram ${name}`)
  }
  for (const [key, { bounds, count, sum }] of series) {
    if (sum === undefined || count === undefined) fail(key, `${name} lacks sum or count`)
    if (bounds.at(-1)?.[0] !== Infinity || bounds.at(-1)?.[1] !== count) fail(key, `${name}: +Inf is not its count`)
    for (let i = 1; i < bounds.length; i++) {
      if (bounds[i]![0] <= bounds[i - 1]![0] || bounds[i]![1] < bounds[i - 1]![1]) fail(key, `${name} does not rise`)
    }
  }
}

/**
 * Parses Prometheus' text format 0.0.4 strictly: each metric is there once and in one piece, HELP before TYPE before its samples,
 * no series twice, histograms complete, and a line end at the end. Throws otherwise.
 */
export const parseExposition = (text: string): ReadonlyMap<string, Exposed> => {
  if (!text.endsWith("\n")) fail(text.slice(-40), "no line end at the end")
  const found = new Map<string, Exposed & { samples: Array<Sample> }>()
  const seen = new Set<string>()
  let current: { name: string; help: string; type: string | null } | null = null
  for (const line of text.slice(0, -1).split("\n")) {
    const [, keyword, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? []
    if (keyword === "HELP") {
      if (found.has(name) || !metricName.test(name)) fail(line, "a metric twice, or no name")
      current = { name, help: rest, type: null }
    } else if (keyword === "TYPE") {
      if (current?.name !== name || current.type !== null) fail(line, "a type without its help")
      if (!["counter", "gauge", "histogram"].includes(rest)) fail(line, "no type")
      current!.type = rest
      found.set(name, { type: rest, help: current!.help, samples: [] })
    } else {
      const sample = sampleOf(line)
      const of = current?.type === "histogram" ? sample.name.replace(/_(bucket|sum|count)$/, "") : sample.name
      if (current === null || of !== current.name) fail(line, "a sample away from its metric")
      const series = `${sample.name} ${keyOf(sample)}`
      if (seen.has(series)) fail(line, "a series twice")
      seen.add(series)
      found.get(of)!.samples.push(sample)
    }
  }
  for (const [name, { samples, type }] of found) {
    if (type === "histogram") checkHistogram(name, samples)
    if (type === "counter" && samples.some((sample) => !(sample.value >= 0))) fail(name, "a counter below zero")
  }
  return found
}

/** The value of the one sample with this name and these labels; undefined: there is none. */
export const sampleValue = (
  exposed: ReadonlyMap<string, Exposed>,
  name: string,
  labels: Readonly<Record<string, string>> = {}
): number | undefined => {
  for (const { samples } of exposed.values()) {
    for (const sample of samples) {
      if (sample.name !== name) continue
      if (Object.entries(labels).every(([label, text]) => sample.labels.get(label) === text)) return sample.value
    }
  }
  return undefined
}
