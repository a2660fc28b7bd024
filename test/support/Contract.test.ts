import { expectTypeOf, it } from "vitest"
import type { Answered, Sent, Source, Trace } from "./Contract.ts"

/** These tests are proved by the type check; at run time nothing can fail. */

it("The type of a call's answer follows from method and path, whatever the parameters are", () => {
  expectTypeOf<Answered<"GET", `/requests/${string}/trace`>>().toEqualTypeOf<Trace>()
  expectTypeOf<Answered<"GET", `/events/${string}`>["webhook_id"]>().toBeString()
  expectTypeOf<Answered<"PUT", `/sources/${string}/disable`>>().toEqualTypeOf<Source>()
  expectTypeOf<Answered<"DELETE", `/sources/${string}`>["deleted"]>().toEqualTypeOf<true>()
  expectTypeOf<Answered<"GET", `/transformations/${string}/executions/${string}`>["code_hash"]>().toBeString()
})

it("Literal path segments have priority over parameters, and a query does not change the type", () => {
  expectTypeOf<Answered<"GET", "/events/count">["total"]>().toBeNumber()
  expectTypeOf<
    Answered<"GET", `/requests?source_id=${string}&include=data`>["models"][number]["status"]
  >().toEqualTypeOf<"accepted" | "rejected">()
})

it("Calls that the contract does not have are of unknown type", () => {
  expectTypeOf<Answered<"GET", "/nothing">>().toBeUnknown()
  expectTypeOf<Answered<"PATCH", "/sources">>().toBeUnknown()
  expectTypeOf<Answered<"GET", string>>().toBeUnknown()
  expectTypeOf<Source>().not.toHaveProperty("nothing")
})

it("A call accepts the body of its endpoint", () => {
  expectTypeOf<{ name: string; code: string }>().toExtend<Sent<"POST", "/transformations">>()
  expectTypeOf<{ name: number; code: string }>().not.toExtend<Sent<"POST", "/transformations">>()
  expectTypeOf<{ name: string; rules: [{ type: "nothing" }] }>().not.toExtend<Sent<"POST", "/connections">>()
})
