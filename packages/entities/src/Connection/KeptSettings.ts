import { WeighedCache } from "@tidegate/runtime/WeighedCache"
import type { RouteSettings } from "./RouteSettings.ts"

const maxKept = 20_000

/** Settings with their weight in bytes. */
interface Weighed {
  readonly settings: RouteSettings
  readonly bytes: number
}

/** The settings of connections without work; one cache per process. A connection at work holds its own. */
export type SettingsCache = WeighedCache<string, Weighed>

export const makeSettingsCache = (): SettingsCache => new WeighedCache(maxKept)

/** The settings by which one connection decides: held while it works, and in the cache otherwise. */
export class KeptSettings {
  readonly #connectionId: string
  readonly #cache: SettingsCache
  #own: Weighed | null = null

  constructor(connectionId: string, cache: SettingsCache) {
    this.#connectionId = connectionId
    this.#cache = cache
  }

  /** Null: they have to be read. */
  get current(): RouteSettings | null {
    this.#own ??= this.#cache.get(this.#connectionId) ?? null
    return this.#own?.settings ?? null
  }

  set(settings: RouteSettings, bytes: number): void {
    this.#own = { settings, bytes }
  }

  /** From here on the settings are read again before they decide. */
  forget(): void {
    this.#own = null
    this.#cache.delete(this.#connectionId)
  }

  /** The connection has no more work. `owner`: its team; null: nothing is kept. */
  putAway(owner: string | null): void {
    const own = this.#own
    this.#own = null
    if (own === null || owner === null || this.#cache.get(this.#connectionId) === own) return
    this.#cache.set(this.#connectionId, own, { owner, bytes: own.bytes })
  }
}
