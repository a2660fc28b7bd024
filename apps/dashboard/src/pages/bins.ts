/**
 * The public bins that were made in this browser. The gateway does not list them: only somebody who has the token of a bin can read it. A bin ends
 * after an hour. The browser forgets it then, or when the reader signs out.
 */
export interface Bin {
  readonly id: string
  readonly endpoint: string
  readonly token: string
  readonly expires_at: string
}

const place = "bins"
/** Bins that are remembered: the gateway makes ten in an hour for one address. */
const most = 20

const isBin = (value: unknown): value is Bin =>
  typeof value === "object" &&
  value !== null &&
  ["id", "endpoint", "token", "expires_at"].every(
    (name) => typeof (value as Record<string, unknown>)[name] === "string"
  )

export const keptBins = (): ReadonlyArray<Bin> => {
  try {
    const all: unknown = JSON.parse(localStorage.getItem(place) ?? "[]")
    return Array.isArray(all) ? all.filter((one) => isBin(one) && Date.parse(one.expires_at) > Date.now()) : []
  } catch {
    return []
  }
}

const store = (bins: ReadonlyArray<Bin>): void => localStorage.setItem(place, JSON.stringify(bins.slice(0, most)))

export const keepBin = ({ endpoint, expires_at, id, token }: Bin): void =>
  store([{ id, endpoint, token, expires_at }, ...keptBins()])

export const forgetBin = (id: string): void => store(keptBins().filter((one) => one.id !== id))

export const forgetBins = (): void => localStorage.removeItem(place)
