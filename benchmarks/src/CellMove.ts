/**
 * A model of how a team moves from one cell to another (docs/cells.md), to try the order of its steps before anybody builds it. A cell is a
 * PostgreSQL server with its processes. The model has no network and no clock: `random` chooses what happens next, and who dies.
 */

type Cell = "A" | "B"

/** The steps of a move, in their order. Each is a commit, and each may be repeated. */
export const steps = ["close A", "open B", "point directory to B", "stop A", "move queue", "start B"] as const
export type Step = (typeof steps)[number]

interface Item {
  readonly id: number
  readonly key: number
}

interface State {
  /** Whether the cell stores requests of the team. */
  open: boolean
  /** Whether the cell delivers events of the team. */
  delivers: boolean
  /** Events that wait for their delivery, in the order in which they were acknowledged. */
  queue: Array<Item>
  /** Events that are being moved. They are not under way, and this cell does not deliver them. */
  readonly leaving: Set<number>
  /** Every event that this cell has or had. */
  readonly known: Set<number>
}

export interface Run {
  readonly random: () => number
  readonly requests: number
  /** Whether processes die between any two commits. */
  readonly crashes: boolean
  /** The order in which the steps are carried out. */
  readonly order?: ReadonlyArray<Step>
  /** Whether a cell remembers the events that it has delivered. Without it, the model shows why it has to. */
  readonly remembers?: boolean
}

export interface Outcome {
  readonly acknowledged: ReadonlyArray<Item>
  readonly delivered: ReadonlyArray<Item & { readonly by: Cell }>
  /** Events whose process died after the target had the event, and before that was stored: these are repeated. */
  readonly interrupted: ReadonlySet<number>
  /** How often a sender was asked to come again. */
  readonly refused: number
}

const cell = (isFirst: boolean): State => ({
  open: isFirst,
  delivers: isFirst,
  queue: [],
  leaving: new Set(),
  known: new Set()
})

export const move = ({ crashes, order = steps, random, remembers = true, requests }: Run): Outcome => {
  const cells: Readonly<Record<Cell, State>> = { A: cell(true), B: cell(false) }
  let directory: Cell = "A"
  /** The directory entries that edges have cached. An edge reads the directory again only after a cell refuses it. */
  const edges: Array<Cell> = ["A", "A", "A"]
  const acknowledged: Array<Item> = []
  const delivered: Array<Item & { by: Cell }> = []
  const interrupted = new Set<number>()
  let refused = 0
  /** The first step that is not known to be carried out. */
  let next = 0

  const chance = (of: number): boolean => random() < of
  const dies = (): boolean => crashes && chance(0.2)

  const send = (): void => {
    const edge = Math.floor(random() * edges.length)
    const at = cells[edges[edge]!]
    if (!at.open) {
      refused++
      edges[edge] = directory
      return
    }
    const item = { id: acknowledged.length, key: Math.floor(random() * 3) }
    at.queue.push(item)
    at.known.add(item.id)
    acknowledged.push(item)
  }

  const deliver = (by: Cell): void => {
    const state = cells[by]
    const ready = state.queue.filter(
      ({ id, key }, at) => !state.leaving.has(id) && state.queue.findIndex((other) => other.key === key) === at
    )
    const item = ready[Math.floor(random() * ready.length)]
    if (!state.delivers || item === undefined) return
    delivered.push({ ...item, by })
    if (dies()) interrupted.add(item.id)
    else state.queue.splice(state.queue.indexOf(item), 1)
  }

  /** Moves a few events: they are marked, then inserted at the other cell, then deleted. Returns whether none is left. */
  const moveSome = (): boolean => {
    const { A, B } = cells
    if (A.leaving.size === 0) for (const { id } of A.queue.slice(0, 3)) A.leaving.add(id)
    if (dies()) return false
    const moved = A.queue.filter(({ id }) => A.leaving.has(id))
    const isNew = ({ id }: Item): boolean => (remembers ? !B.known.has(id) : !B.queue.some((other) => other.id === id))
    // These events were acknowledged before all events that B has stored itself.
    B.queue = [...B.queue, ...moved.filter(isNew)].toSorted((a, b) => a.id - b.id)
    for (const { id } of moved) B.known.add(id)
    if (dies()) return false
    A.queue = A.queue.filter(({ id }) => !A.leaving.has(id))
    A.leaving.clear()
    return A.queue.length === 0
  }

  const carryOut: Readonly<Record<Step, () => boolean>> = {
    "close A": () => !(cells.A.open = false),
    "open B": () => (cells.B.open = true),
    "point directory to B": () => (directory = "B") === "B",
    "stop A": () => !(cells.A.delivers = false),
    "move queue": moveSome,
    "start B": () => (cells.B.delivers = true)
  }

  const go = (): void => {
    const step = order[next]
    if (step === undefined) return
    const isDone = carryOut[step]()
    // The process that carries out the move may die before it knows that a step is done. Its successor repeats the step.
    if (isDone && !dies()) next++
  }

  const isOver = (): boolean =>
    acknowledged.length >= requests && next === order.length && cells.A.queue.length + cells.B.queue.length === 0
  for (let turn = 0; turn < 100_000 && !isOver(); turn++) {
    const what = random()
    if (what < 0.4) {
      if (acknowledged.length < requests) send()
    } else if (what < 0.85) deliver(chance(0.5) ? "A" : "B")
    // The move begins when there is something to move.
    else if (acknowledged.length > requests / 3) go()
  }
  return { acknowledged, delivered, interrupted, refused }
}

/** The faults of an outcome. Empty: there are none. */
export const faultsOf = ({ acknowledged, delivered, interrupted }: Outcome): ReadonlyArray<string> => {
  const faults: Array<string> = []
  const times = Map.groupBy(delivered, ({ id }) => id)
  for (const { id } of acknowledged) {
    const count = times.get(id)?.length ?? 0
    if (count === 0) faults.push(`event ${id} is lost`)
    if (count > 1 && !interrupted.has(id)) faults.push(`event ${id} is delivered ${count} times, and nobody died`)
  }
  for (const [key, of] of Map.groupBy(delivered, ({ key }) => key)) {
    const first = [...new Set(of.map(({ id }) => id))]
    if (first.some((id, at) => at > 0 && id < first[at - 1]!)) faults.push(`events of key ${key} are out of order`)
  }
  return faults
}
