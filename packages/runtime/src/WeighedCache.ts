/**
 * Caches of values from untrusted input, limited in bytes. All caches of a process share one limit, because they share one heap. The weight of
 * an entry is determined when it is loaded; nothing is counted when it is used.
 */

interface Entry {
  readonly cache: { readonly forget: (entry: Entry) => void }
  readonly key: unknown
  readonly value: unknown
  readonly owner: string
  readonly bytes: number
  /** Used since the last search for entries to evict. */
  isUsed: boolean
}

/** The entries of one owner, the oldest first. */
interface Owned {
  readonly entries: Set<Entry>
  bytes: number
}

/** Bytes of an entry besides its value: its slots in maps. */
const perEntry = 300

/**
 * The byte limit that caches share. Above it, the owner that holds the most loses its oldest entry that was not used since the last check. So an
 * owner that fills the caches evicts its own entries, not those of others.
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

  /** Changes the limit, in bytes. */
  resize(most: number): void {
    this.#most = most
    this.#clear()
  }

  /** Adds an entry and evicts others if necessary; false: it alone exceeds the limit. */
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

  /** Evicts until the limit holds. `kept` is the new entry, which stays. */
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

/** The first entry that was not used; used ones are unmarked and moved to the end. */
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

/** The limit of this process. The start-up code sets it by the size of the heap. */
export const processRoom = new CacheRoom(256 * 1_048_576)

/** The owner of entries that belong to no team. */
export const nobody = ""

/**
 * A map that may evict entries: it holds at most a number of entries, and together with the other caches at most a number of bytes. Callers
 * give the owner and the weight of each entry (`HeldBytes.ts`). Recently used entries stay longer.
 */
export class WeighedCache<Key, A> {
  readonly #entries = new Map<Key, Entry>()
  readonly #most: number
  readonly #room: CacheRoom
  /** The same entries, in eviction order. */
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

  /** Adds an entry, unless it alone exceeds the limit. Returns the value. */
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
