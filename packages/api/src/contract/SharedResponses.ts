import type { OpenApi } from "effect/http-api"

type Specification = OpenApi.OpenAPISpec

interface Failure {
  readonly content?: {
    readonly [type: string]: { readonly schema: Alternative & { readonly anyOf?: ReadonlyArray<Alternative> } }
  }
}

interface Alternative {
  readonly $ref?: string
}

/** The name of a failure with these codes: `NotFound`, `InvalidJsonOrValidation`. Null: its codes are not known. */
const nameOf = ({ content }: Failure): string | null => {
  const schema = content?.["application/json"]?.schema
  const names = (schema?.anyOf ?? [schema]).map((one) => /\/(\w+)Error$/.exec(one?.$ref ?? "")?.[1])
  return names.includes(undefined) ? null : names.join("Or")
}

const isFailure = (status: string): boolean => Number(status) >= 400

type Operations = ReadonlyArray<{ readonly responses?: { readonly [status: string]: Failure } }>

/** The failures that several operations have, by name. Two failures with the same codes are the same, or the later one stays where it is. */
const repeated = (paths: Specification["paths"]): ReadonlyMap<string, Failure> => {
  const found = new Map<string, Failure>()
  const shared = new Map<string, Failure>()
  for (const { responses = {} } of Object.values(paths).flatMap((path) => Object.values(path) as Operations)) {
    for (const [status, failure] of Object.entries(responses)) {
      const name = isFailure(status) ? nameOf(failure) : null
      if (name === null) continue
      if (found.has(name)) shared.set(name, found.get(name)!)
      else found.set(name, failure)
    }
  }
  return shared
}

/**
 * Moves the failures that several operations have to the components: operations have 1,500 of them, and fewer than a hundred
 * different ones.
 */
export const shareFailures = (document: Specification): object => {
  const shared = repeated(document.paths)
  const withReference = (failure: Failure): object => {
    const name = nameOf(failure)
    const isShared = name !== null && JSON.stringify(shared.get(name)) === JSON.stringify(failure)
    return isShared ? { $ref: `#/components/responses/${name}` } : failure
  }
  const share = (value: object): object => {
    if (!("responses" in value)) return value
    const responses = Object.entries(value.responses as { readonly [status: string]: Failure }).map(
      ([status, response]) => [status, isFailure(status) ? withReference(response) : response] as const
    )
    return { ...value, responses: Object.fromEntries(responses) }
  }
  const paths = Object.entries(document.paths).map(([path, item]) => {
    const members = Object.entries(item as { readonly [name: string]: object })
    return [path, Object.fromEntries(members.map(([name, value]) => [name, share(value)]))] as const
  })
  return {
    ...document,
    paths: Object.fromEntries(paths),
    components: { ...document.components, responses: Object.fromEntries(shared) }
  }
}
