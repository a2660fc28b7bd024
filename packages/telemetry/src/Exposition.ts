import { Context, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import type { Cell, Instrument, Series } from "./Instruments.ts"
import { instruments } from "./Metrics.ts"

/** The content type of the text below (Prometheus' format 0.0.4). */
export const contentType = "text/plain; version=0.0.4; charset=utf-8"

const types = { counter: "Counter", gauge: "Gauge", histogram: "Histogram" } as const

const unchangeable = (): void => {
  throw new Error("this metric is changed by its cell")
}

/** One series in the form of Effect's exporters. */
const asMetric = (
  { help, kind, name, unit }: Instrument,
  { cell, labels }: Series
): Metric.Metric.Metadata<unknown, Cell["state"]> => ({
  id: name,
  type: types[kind],
  description: help,
  // In Prometheus the metric's name contains the unit, and its formatter omits this attribute.
  attributes: unit === "1" ? labels : { ...labels, unit },
  hooks: { get: () => cell.state, update: unchangeable, modify: unchangeable }
})

/** The instruments as a metric registry of Effect, with their present values: exporters only read the values of a registry. */
export class Registry extends Map<string, Metric.Metric.Metadata<unknown, Cell["state"]>> {
  readonly #instruments: ReadonlyArray<Instrument>

  constructor(of: ReadonlyArray<Instrument>) {
    super()
    this.#instruments = of
  }

  override *values(): MapIterator<Metric.Metric.Metadata<unknown, Cell["state"]>> {
    for (const instrument of this.#instruments)
      for (const series of instrument.series()) yield asMetric(instrument, series)
  }
}

/** What exporters read: only the metrics of this project. */
export const context: Context.Context<never> = Context.make(Metric.MetricRegistry, new Registry(instruments))

/** The metrics in Prometheus' text format. */
export const exposition = (): string => PrometheusMetrics.formatUnsafe(context)
