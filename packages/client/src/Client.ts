import createFetchClient, { type FetchOptions } from "openapi-fetch"
import type { FilterKeys, PathsWithMethod, RequiredKeysOf, SuccessResponse } from "openapi-typescript-helpers"
import { retrying, type RetryOptions } from "./Retry.ts"
import type { paths } from "./schema.ts"
import { TidegateError } from "./TidegateError.ts"

export interface ClientOptions extends Partial<RetryOptions> {
  /** The gateway's origin, such as `https://hooks.example.com`; a path before `/v1` may follow. */
  readonly baseUrl: string
  /** An API key, or the token of a session. Without it, a call is authorized by what `fetch` adds, such as a page's cookie. */
  readonly key?: string
  /** The team to act on, if it is not the key's own team. */
  readonly team?: string
  readonly fetch?: (request: Request) => Promise<Response>
  readonly json?: Json
}

/**
 * Reads and writes JSON (default: `JSON`). JavaScript's numbers hold 15 to 17 digits, but the gateway's answers contain all
 * digits that a sender wrote. Pass another implementation to keep all of them.
 */
export interface Json {
  readonly parse: (text: string) => unknown
  readonly stringify: (value: unknown) => string
}

type Method = "get" | "post" | "put" | "patch" | "delete"
type Operation<Path extends keyof paths, M extends Method> = FilterKeys<paths[Path], M>
type Options<Path extends keyof paths, M extends Method> = FetchOptions<Operation<Path, M>>
/** The options are optional when none of them is required. */
type Rest<O> = RequiredKeysOf<O> extends never ? [options?: O] : [options: O]
type Responses<O> = O extends { readonly responses: infer R extends Record<string | number, unknown> } ? R : never
/** The body of a call's successful answer. */
type Answer<Path extends keyof paths, M extends Method> = SuccessResponse<Responses<Operation<Path, M>>>

/** What every list answers. */
interface Page<Model = unknown> {
  readonly models: ReadonlyArray<Model>
  readonly next_cursor: string | null
  readonly has_more: boolean
}

/** The paths whose answers are lists. */
type ListPath = {
  [Path in PathsWithMethod<paths, "get">]: Answer<Path, "get"> extends Page ? Path : never
}[PathsWithMethod<paths, "get">]
type Item<Path extends ListPath> = Answer<Path, "get"> extends { models: ReadonlyArray<infer Model> } ? Model : never

interface Query {
  readonly params?: { readonly query?: Readonly<Record<string, unknown>> }
}

/**
 * Calls a gateway. A call resolves with the body of the answer, or rejects with a `TidegateError`. Paths, parameters, bodies and
 * answers have the types of the contract.
 */
export class Client {
  readonly #request: (method: Method, path: string, options: object) => Promise<unknown>

  constructor({ baseUrl, fetch = globalThis.fetch, json = JSON, key, team, ...retry }: ClientOptions) {
    const api = createFetchClient<paths>({
      baseUrl: `${baseUrl.replace(/\/+$/, "")}/v1`,
      bodySerializer: (body) => json.stringify(body),
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(team === undefined ? {} : { "x-team-id": team })
      },
      fetch: retrying(fetch, { retries: 3, longestWaitMs: 60_000, timeoutMs: 60_000, ...retry })
    })
    this.#request = async (method, path, options) => {
      const { data, error, response } = await api.request(
        method,
        path as never,
        { ...options, parseAs: "text" } as never
      )
      if (!response.ok) throw new TidegateError(response, error)
      return typeof data === "string" && data !== "" ? json.parse(data) : undefined
    }
  }

  get<Path extends PathsWithMethod<paths, "get">>(path: Path, ...rest: Rest<Options<Path, "get">>) {
    return this.#call("get", path, rest)
  }

  post<Path extends PathsWithMethod<paths, "post">>(path: Path, ...rest: Rest<Options<Path, "post">>) {
    return this.#call("post", path, rest)
  }

  put<Path extends PathsWithMethod<paths, "put">>(path: Path, ...rest: Rest<Options<Path, "put">>) {
    return this.#call("put", path, rest)
  }

  patch<Path extends PathsWithMethod<paths, "patch">>(path: Path, ...rest: Rest<Options<Path, "patch">>) {
    return this.#call("patch", path, rest)
  }

  delete<Path extends PathsWithMethod<paths, "delete">>(path: Path, ...rest: Rest<Options<Path, "delete">>) {
    return this.#call("delete", path, rest)
  }

  /**
   * Returns all rows of a list that match the query. Each page is requested when its first row is needed. Some lists (sources and
   * the other resources, fixtures, bulk operations) have only one page, of at most `limit` rows (default: 255). If such a list
   * may have more rows, this throws after the page, because a shortened list would look complete.
   */
  async *list<Path extends ListPath>(path: Path, ...[options]: Rest<Options<Path, "get">>): AsyncGenerator<Item<Path>> {
    const { params } = (options ?? {}) as Query
    for (let cursor: { readonly cursor?: string | null } = {}, more = true; more;) {
      const query = { ...params?.query, ...cursor }
      const page = (await this.#request("get", path, { ...options, params: { ...params, query } })) as Page<Item<Path>>
      yield* page.models
      more = page.has_more
      cursor = { cursor: page.next_cursor }
    }
  }

  #call<Path extends keyof paths, M extends Method>(
    method: M,
    path: Path,
    [options]: [options?: object]
  ): Promise<Answer<Path, M>> {
    return this.#request(method, path, options ?? {}) as Promise<Answer<Path, M>>
  }
}
