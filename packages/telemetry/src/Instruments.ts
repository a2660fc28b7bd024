import type { Metric } from "effect"

/**
 * Counters, gauges and histograms whose updates cost a few nanoseconds: numbers in plain objects, without a fiber or a context.
 * `Exposition.ts` presents them to Effect's exporters.
 */

/** Reads a value that other code keeps; called at export. */
type Reading = () => number

export class Counter {
  #count = 0
  #reading: Reading | null = null

  add(count = 1): void {
    this.#count += count
  }

  /** From now on the count is read by `reading`. */
  readBy(reading: Reading): void {
    this.#reading = reading
  }

  get value(): number {
    return this.#reading?.() ?? this.#count
  }

  get state(): Metric.CounterState<number> {
    return { count: this.value, incremental: true }
  }
}

export class Gauge {
  #value = 0
  #reading: Reading | null = null

  set(value: number): void {
    this.#value = value
  }

  readBy(reading: Reading): void {
    this.#reading = reading
  }

  get value(): number {
    return this.#reading?.() ?? this.#value
  }

  get state(): Metric.GaugeState<number> {
    return { value: this.value }
  }
}

export class Histogram {
  readonly #bounds: ReadonlyArray<number>
  /** One bucket more than bounds: for values above all of them. */
  readonly #counts: Array<number>
  #count = 0
  #sum = 0
  #min = Number.POSITIVE_INFINITY
  #max = Number.NEGATIVE_INFINITY

  constructor(bounds: ReadonlyArray<number>) {
    this.#bounds = bounds
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  observe(value: number): void {
    const bounds = this.#bounds
    let at = 0
    while (at < bounds.length && value > bounds[at]!) at++
    this.#counts[at]!++
    this.#count++
    this.#sum += value
    if (value < this.#min) this.#min = value
    if (value > this.#max) this.#max = value
  }

  get count(): number {
    return this.#count
  }

  get state(): Metric.HistogramState {
    let below = 0
    return {
      buckets: this.#bounds.map((bound, at) => [bound, (below += this.#counts[at]!)] as const) as Array<
        [number, number]
      >,
      count: this.#count,
      sum: this.#sum,
      min: this.#count === 0 ? 0 : this.#min,
      max: this.#count === 0 ? 0 : this.#max
    }
  }
}

export type Cell = Counter | Gauge | Histogram

/** The values of a label: a closed list, or a maximum number of values in the order of their appearance. All others become "other". */
export type LabelValues = ReadonlyArray<string> | number
export type Labels = ReadonlyArray<readonly [name: string, values: LabelValues]>

const other = "other"

/** The value of a label, or "other" if it is not in the list or the maximum is reached. */
const bounded = (values: LabelValues, known: ReadonlyMap<string, unknown>, value: string): string => {
  if (typeof values === "number") return known.size < values ? value : other
  return values.includes(value) ? value : other
}

export type Kind = "counter" | "gauge" | "histogram"
export type Unit = "1" | "s" | "By"

export interface Series {
  readonly labels: Readonly<Record<string, string>>
  readonly cell: Cell
}

/** A declared metric, with its present series. */
export interface Instrument {
  readonly name: string
  readonly kind: Kind
  readonly help: string
  readonly unit: Unit
  readonly labels: Labels
  readonly series: () => Iterable<Series>
}

/** A value of a gauge, with its labels. */
type Row<L extends Labels> = readonly [values: { readonly [I in keyof L]: string }, value: number]

type Tree<C> = Map<string, Tree<C> | C>

/** The cells of one metric, by label values: never more than the labels declare. */
export class Family<C extends Cell, const L extends Labels> implements Instrument {
  readonly name: string
  readonly kind: Kind
  readonly help: string
  readonly unit: Unit
  readonly labels: L
  readonly #make: () => C
  #root: Tree<C> | C
  #reading: (() => ReadonlyArray<Row<L>>) | null = null

  constructor(about: Omit<Instrument, "series" | "labels"> & { readonly labels: L; readonly make: () => C }) {
    this.name = about.name
    this.kind = about.kind
    this.help = about.help
    this.unit = about.unit
    this.labels = about.labels
    this.#make = about.make
    this.#root = this.#node(0)
    this.#begin([])
  }

  /** The cell of these values, in the order of the labels. */
  at(...values: { readonly [I in keyof L]: string }): C {
    let node: Tree<C> | C = this.#root
    for (let level = 0; level < values.length; level++) {
      const tree: Tree<C> = node as Tree<C>
      const value = values[level]!
      node = tree.get(value) ?? this.#add(tree, level, value)
    }
    return node as C
  }

  /** Replaces all series, for values that are computed as a whole at intervals. */
  replace(rows: ReadonlyArray<Row<L>>): void {
    this.#root = this.#node(0)
    for (const [values, value] of rows) {
      const cell = this.at(...values)
      if (cell instanceof Gauge) cell.set(value)
    }
  }

  /** From now on the series are returned by `reading` at each export. */
  readBy(reading: () => ReadonlyArray<Row<L>>): void {
    this.#reading = reading
  }

  *series(): Iterable<Series> {
    if (this.#reading !== null) this.replace(this.#reading())
    yield* this.#walk(this.#root, 0, {})
  }

  *#walk(node: Tree<C> | C, level: number, labels: Readonly<Record<string, string>>): Iterable<Series> {
    if (node instanceof Map) {
      const name = this.labels[level]![0]
      for (const [value, next] of node) yield* this.#walk(next, level + 1, { ...labels, [name]: value })
    } else yield { labels, cell: node }
  }

  #add(tree: Tree<C>, level: number, given: string): Tree<C> | C {
    const value = bounded(this.labels[level]![1], tree, given)
    const known = tree.get(value)
    if (known !== undefined) return known
    const made = this.#node(level + 1)
    tree.set(value, made)
    return made
  }

  #node(level: number): Tree<C> | C {
    return level === this.labels.length ? this.#make() : new Map()
  }

  /** Series that are known in advance start at zero, because a rate needs a first value. */
  #begin(values: ReadonlyArray<string>): void {
    const next = this.labels[values.length]
    if (next === undefined) this.at(...(values as { readonly [I in keyof L]: string }))
    else if (typeof next[1] !== "number") for (const value of next[1]) this.#begin([...values, value])
  }
}
