import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import * as formats from "ajv-formats"
import type { Body, Gateway } from "../../support/Gateway.ts"

/** One operation of the served document. */
export interface Operation {
  readonly id: string
  readonly method: string
  /** With its `{names}`. */
  readonly path: string
  /** As the document has it, but with its shared answers in place of the references to them. */
  readonly spec: Body
}

const methods = ["get", "put", "post", "delete", "patch"]

/** `/openapi.json` as a gateway serves it, and its schemas ready to judge values. */
export class Document {
  readonly json: Body
  readonly operations: ReadonlyArray<Operation>
  /** A component is compiled once for all places that refer to it, and not optimized: most schemas judge few values. */
  readonly #ajv = new Ajv2020({ strict: false, inlineRefs: false, code: { optimize: false } })
  readonly #compiled = new Map<string, ValidateFunction>()

  private constructor(json: Body) {
    this.json = json
    this.operations = Object.entries<Body>(json.paths).flatMap(([path, item]) =>
      methods
        .filter((method) => item[method] !== undefined)
        .map((method) => ({
          id: item[method].operationId,
          method: method.toUpperCase(),
          path,
          spec: withAnswers(item[method], json.components.responses)
        }))
    )
    formats.default.default(this.#ajv)
    this.#ajv.addSchema({ $id: "document", ...json })
  }

  static async of(gateway: Gateway): Promise<Document> {
    const answer = await fetch(`${gateway.origin}/openapi.json`)
    return new Document(await answer.json())
  }

  operation(id: string): Operation {
    const found = this.operations.find((operation) => operation.id === id)
    if (found === undefined) throw new Error(`no operation ${id}`)
    return found
  }

  /** What is wrong with a value by the schema at a place of the document; null when nothing is. */
  fault(pointer: string, value: unknown): string | null {
    let validate = this.#compiled.get(pointer)
    if (validate === undefined) {
      validate = this.#ajv.compile({ $ref: `document#${pointer}` })
      this.#compiled.set(pointer, validate)
    }
    return validate(value) ? null : this.#ajv.errorsText(validate.errors)
  }

  /** The same for the JSON body of an operation, or of its answer. */
  bodyFault({ method, path }: Operation, value: unknown, status?: number): string | null {
    const at = ["", "paths", path, method.toLowerCase()]
    const of = status === undefined ? ["requestBody"] : ["responses", String(status)]
    const place = [...at, ...of].map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1")))
    const shared = this.json.paths[path][method.toLowerCase()].responses[String(status)]?.$ref
    return this.fault(`${shared?.slice(1) ?? place.join("/")}/content/application~1json/schema`, value)
  }

  /**
   * What is wrong with how a call failed: its status, code and body have to be among those that its operation states. Null too
   * for what is no operation, and for what the router answers of any path.
   */
  failureFault(method: string, target: string, status: number, body: Body): string | null {
    const path = target.replace(/^\/v1(?=\/)/i, "").replace(/\?.*$/s, "")
    const operation = this.operations.find(
      (one) => one.method === method && new RegExp(`^${one.path.replaceAll(/\{\w+\}/g, "[^/]+")}/?$`, "i").test(path)
    )
    if (operation === undefined || routing.has(body.code)) return null
    return operation.spec.responses[status] === undefined
      ? `${operation.id} does not state ${status} ${body.code}`
      : this.bodyFault(operation, body, status)
  }
}

const withAnswers = (spec: Body, shared: Body): Body => {
  const answers = Object.entries<Body>(spec.responses).map(([status, answer]) => [
    status,
    answer.$ref === undefined ? answer : shared[answer.$ref.split("/").at(-1)]
  ])
  return { ...spec, responses: Object.fromEntries(answers) }
}

const routing: ReadonlySet<string> = new Set(["ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED"])
