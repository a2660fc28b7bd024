/** A compiled schema of `kubernetes-models`. */
export interface Validate {
  (data: unknown): boolean
  readonly errors?: ReadonlyArray<{
    readonly instancePath: string
    readonly message?: string
    readonly params?: object
  }> | null
}

/** Notes which members are read, here and below. */
const noting = (value: unknown, path: string, read: Set<string>): unknown =>
  typeof value !== "object" || value === null
    ? value
    : new Proxy(value, {
        get: (target, name) => {
          const found: unknown = Reflect.get(target, name)
          if (typeof name === "symbol" || !Object.hasOwn(target, name)) return found
          read.add(`${path}/${name}`)
          return noting(found, `${path}/${name}`, read)
        }
      })

function* pathsIn(value: unknown, path: string): Generator<string> {
  if (typeof value !== "object" || value === null) return
  for (const [name, inner] of Object.entries(value)) {
    yield `${path}/${name}`
    yield* pathsIn(inner, `${path}/${name}`)
  }
}

/**
 * The faults of a Kubernetes object. The schemas allow unknown members, and a server ignores them, so a misspelt member has no effect. A member that
 * the schema did not read is unknown to it.
 */
export const faultsOf = (validate: Validate, object: unknown): ReadonlyArray<string> => {
  const read = new Set<string>()
  if (!validate(noting(object, "", read))) {
    return (validate.errors ?? []).map(({ instancePath, params }) => `${instancePath}: ${JSON.stringify(params)}`)
  }
  const unknown = [...pathsIn(object, "")].filter((path) => !read.has(path))
  // Only the topmost: what is below an unknown member is unknown as well.
  return unknown
    .filter((path) => !unknown.some((other) => path.startsWith(`${other}/`)))
    .map((path) => `${path} is unknown`)
}
