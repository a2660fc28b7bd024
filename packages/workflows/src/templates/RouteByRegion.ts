import { chain, edge, send, template } from "./Template.ts"

const region = (key: string, name: string, countries: ReadonlyArray<string>) => ({
  key,
  name,
  rule: "conditions",
  conditions: { body: { country: { $in: countries } } }
})

export const routeByRegion = template({
  key: "route-by-region",
  version: 1,
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "Route by region",
  description: "Sends each order to the system of its region, by its country; what belongs to none goes to a third.",
  bindings: [
    { key: "europe", type: "destination", description: "Takes orders from the European Union" },
    { key: "america", type: "destination", description: "Takes orders from North America" },
    { key: "others", type: "destination", description: "Takes every other order" }
  ],
  sample: { id: "o_1", country: "DE", total: 120 },
  graph: ({ america, europe, others }) => ({
    steps: [
      {
        id: "region",
        kind: "branch",
        name: "Region",
        config: {
          evaluation: "first",
          paths: [
            region("eu", "Europe", ["AT", "BE", "DE", "DK", "ES", "FI", "FR", "IE", "IT", "NL", "PL", "PT", "SE"]),
            region("na", "America", ["CA", "MX", "US"]),
            { key: "other", name: "Others", rule: "fallback" }
          ]
        }
      },
      send("to_eu", "Europe", europe),
      send("to_na", "America", america),
      send("to_other", "Others", others)
    ],
    edges: [
      ...chain("region"),
      edge("region", "to_eu", { source_port: "path_eu" }),
      edge("region", "to_na", { source_port: "path_na" }),
      edge("region", "to_other", { source_port: "path_other" })
    ]
  })
})
