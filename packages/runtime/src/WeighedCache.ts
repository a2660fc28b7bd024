/**
 * What processes keep of what strangers have written, bounded in bytes. All caches of a process share one room, because one heap holds
 * them: what the settings of one team weigh is told when they are loaded, and nothing is counted when they are used.
 */

interface Entry {
  readonly cache: { readonly forget: (entry: Entry) => void }
  readonly key: unknown
  readonly value: unknown
  readonly owner: string
  readonly bytes: number
  /** Asked for since somebody last looked for what may go. */
  isUsed: boolean
}

/** What one owner keeps, the oldest first. */
interface Owned {
  readonly entries: Set<Entry>
  bytes: number
}

/** What an entry takes besides what it holds: its places in maps. */
const perEntry = 300

/**
 * The bytes that caches may hold together. Beyond them the owner that holds the most lets its oldest entry go that nobody has used since
 * anybody looked: who fills the room pushes out what is its own, and nobody else's.
 */
export class CacheRoom {
  #most: number
  #bytes = 0
  readonly #owners = new Map<string, Owned>()

  constructor(most: number) {
    this.#most = most
  }

  get bytes(): number {
    return this.#bytes
  }

  get most(): number {
    return this.#most
  }

  /** How many bytes there are from here on. */
  resize(most: number): void {
    this.#most = most
    this.#clear()
  }

  /** Takes an entry in, and lets others go for it; false: it alone is more than there is room for. */
  take(entry: Entry): boolean {
    if (entry.bytes > this.#most) return false
    let owned = this.#owners.get(entry.owner)
    if (owned === undefined) this.#owners.set(entry.owner, (owned = { entries: new Set(), bytes: 0 }))
    owned.entries.add(entry)
    owned.bytes += entry.bytes
    this.#bytes += entry.bytes
    this.#clear(entry)
    return true
  }

  letGo(entry: Entry): void {
    const owned = this.#owners.get(entry.owner)
    if (owned === undefined || !owned.entries.delete(entry)) return
    owned.bytes -= entry.bytes
    this.#bytes -= entry.bytes
    if (owned.entries.size === 0) this.#owners.delete(entry.owner)
  }

  /** `kept` has just come. */
  #clear(kept?: Entry): void {
    while (this.#bytes > this.#most) {
      const entry = this.#toLetGo(kept)
      if (entry === null) return
      this.letGo(entry)
      entry.cache.forget(entry)
    }
  }

  #toLetGo(kept: Entry | undefined): Entry | null {
    let most: Owned | null = null
    for (const owned of this.#owners.values()) {
      if (owned.bytes > (most?.bytes ?? 0) && !(owned.entries.size === 1 && owned.entries.has(kept!))) most = owned
    }
    return most === null ? null : oldestOf(most.entries, kept)
  }
}

/** The first that has not been used; those that have are asked about once, and go to the end. */
const oldestOf = (entries: Set<Entry>, kept: Entry | undefined): Entry | null => {
  let left = 2 * entries.size
  for (const entry of entries) {
    if (left-- === 0) return null
    if (entry !== kept && !entry.isUsed) return entry
    entry.isUsed = false
    entries.delete(entry)
    entries.add(entry)
  }
  return null
}

/** The room of this process. Whoever starts it says how large it is by its heap. */
export const processRoom = new CacheRoom(256 * 1_048_576)

/** The owner of what belongs to no team. */
export const nobody = ""

/**
 * A map that may forget: it holds at most so many entries, and with all other caches of its room so many bytes. Whoever keeps something says
 * whose it is, and what it weighs (`HeldBytes.ts`). Of two that may go, the one that was used lately stays.
 */
export class WeighedCache<Key, A> {
  readonly #entries = new Map<Key, Entry>()
  readonly #most: number
  readonly #room: CacheRoom
  /** The same, in the order in which they may go. */
  readonly #order = new Set<Entry>()
  readonly #cache = {
    forget: (entry: Entry): void => {
      this.#entries.delete(entry.key as Key)
      this.#order.delete(entry)
    }
  }

  constructor(most: number, room: CacheRoom = processRoom) {
    this.#most = most
    this.#room = room
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: Key): A | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    entry.isUsed = true
    return entry.value as A
  }

  /** Keeps it; not, when it alone is more than there is room for. */
  set(key: Key, value: A, { bytes, owner }: { readonly bytes: number; readonly owner: string }): A {
    this.delete(key)
    const entry: Entry = { cache: this.#cache, key, value, owner, bytes: bytes + perEntry, isUsed: false }
    if (!this.#room.take(entry)) return value
    this.#entries.set(key, entry)
    this.#order.add(entry)
    if (this.#entries.size > this.#most) this.#dropOldest(entry)
    return value
  }

  delete(key: Key): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#cache.forget(entry)
    this.#room.letGo(entry)
  }

  #dropOldest(kept: Entry): void {
    const oldest = oldestOf(this.#order, kept)
    if (oldest !== null) this.delete(oldest.key as Key)
  }
}
