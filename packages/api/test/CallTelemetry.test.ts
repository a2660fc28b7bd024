import { expect, it } from "vitest"
import { routeOf } from "../src/CallTelemetry.ts"

it("Telemetry names an API call by the route that answers it, even if other routes match", () => {
  for (const path of [
    "/workflows/test",
    "/workflows/aggregate",
    "/filters/test",
    "/events/count",
    "/transformations/run"
  ]) {
    expect(routeOf(path)).toMatchObject({ path, id: null })
    expect(routeOf(`/v1${path}`)).toMatchObject({ path, id: null })
  }
  const id = "wfl_01kak203r4g7b3k6j1h9f8e0mn"
  expect(routeOf(`/workflows/${id}`)).toEqual({ path: "/workflows/:id", group: "workflows", id })
  expect(routeOf(`/v1/workflows/${id}/test`)).toEqual({ path: "/workflows/:id/test", group: "workflows", id })
  expect(routeOf("/nowhere/test")).toEqual({ path: "", group: "other", id: null })
})
