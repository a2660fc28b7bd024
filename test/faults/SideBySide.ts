import { hash } from "node:crypto"
import { setMaxListeners } from "node:events"
import type { Fault } from "./Fault.ts"
import { holdAll, type SeriesOptions } from "./Series.ts"

/** All kinds in their order, again and again. */
export const inOrder = (kinds: ReadonlyArray<Fault>, count: number): ReadonlyArray<Fault> =>
  Array.from({ length: count }, (_, n) => kinds[n % kinds.length]!)

/**
 * Several series with `count` rounds in all. Each has all kinds in a random order, then all kinds in another random order. Kinds with the same
 * topology stay together, so that they can use the same processes and database.
 */
export const drawn = (
  kinds: ReadonlyArray<Fault>,
  { count, seed, series }: { readonly count: number; readonly seed: string; readonly series: number }
): ReadonlyArray<ReadonlyArray<Fault>> =>
  Array.from({ length: series }, (_, index) => {
    const length = Math.floor(count / series) + (index < count % series ? 1 : 0)
    const rounds: Array<Fault> = []
    for (let turn = 0; rounds.length < length && kinds.length > 0; turn++) {
      const place = (name: string): string => hash("sha1", `${seed}/${index}/${turn}/${name}`)
      const key = ({ name, topology }: Fault): string => place(topology) + place(name)
      rounds.push(...kinds.toSorted((a, b) => (key(a) < key(b) ? -1 : 1)))
    }
    return rounds.slice(0, length)
  })

/** Each world and each of its processes listens for the end of the harness. */
const listenersOfOne = 16

/**
 * Runs several series at the same time, each with its own processes and databases. A finding in one series does not stop the others. Returns the
 * folders with the logs of rounds with broken promises.
 */
export const holdSideBySide = async (
  series: ReadonlyArray<ReadonlyArray<Fault>>,
  options: SeriesOptions
): Promise<ReadonlyArray<string>> => {
  setMaxListeners(listenersOfOne * series.length, process)
  return (await Promise.all(series.map((rounds) => holdAll(rounds, options)))).flat()
}
