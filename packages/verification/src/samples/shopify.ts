import type { Moment, Sample, Samples } from "./Sample.ts"

const event = (topic: string, body: (now: Moment) => ReturnType<Sample["body"]>): Sample => ({
  event: topic,
  headers: (now) => ({
    "x-shopify-api-version": "2025-07",
    "x-shopify-event-id": now.uuid(),
    "x-shopify-shop-domain": "example-store.myshopify.com",
    "x-shopify-topic": topic,
    "x-shopify-triggered-at": now.iso,
    "x-shopify-webhook-id": now.uuid()
  }),
  body
})

const customer = { id: 115_310_627_314_723, email: "ada@example.com", first_name: "Ada", last_name: "Lovelace" }

const order = (now: Moment, rest: ReturnType<Sample["body"]>) => ({
  id: 820_982_911_946_154_500,
  admin_graphql_api_id: "gid://shopify/Order/820982911946154500",
  created_at: now.iso,
  updated_at: now.iso,
  cancelled_at: null,
  currency: "USD",
  customer,
  email: customer.email,
  fulfillment_status: null,
  line_items: [
    {
      id: 866_550_311_766_439_000,
      name: "A sample shirt",
      price: "19.95",
      product_id: 788_032_119_674_292_900,
      quantity: 1,
      sku: "SHIRT-1",
      title: "A sample shirt",
      variant_id: null
    }
  ],
  name: "#1001",
  number: 1,
  order_number: 1001,
  shipping_lines: [],
  subtotal_price: "19.95",
  tags: "",
  test: true,
  total_discounts: "0.00",
  total_price: "19.95",
  total_tax: "0.00",
  ...rest
})

export const shopify: Samples = {
  type: "SHOPIFY",
  documentation: "https://shopify.dev/docs/api/webhooks",
  posts: "json",
  samples: [
    event("orders/create", (now) => order(now, { financial_status: "pending" })),
    event("orders/paid", (now) => order(now, { financial_status: "paid" })),
    event("orders/cancelled", (now) =>
      order(now, { financial_status: "voided", cancelled_at: now.iso, cancel_reason: "customer" })
    ),
    event("products/update", (now) => ({
      id: 788_032_119_674_292_900,
      admin_graphql_api_id: "gid://shopify/Product/788032119674292900",
      title: "A sample shirt",
      body_html: "<p>An example</p>",
      handle: "a-sample-shirt",
      product_type: "Shirts",
      vendor: "Example",
      status: "active",
      tags: "cotton",
      created_at: now.iso,
      updated_at: now.iso,
      variants: [
        { id: 642_667_041_472_714_000, title: "Small", price: "19.95", sku: "SHIRT-1", inventory_quantity: 75 }
      ],
      images: []
    })),
    event("customers/create", (now) => ({
      ...customer,
      admin_graphql_api_id: "gid://shopify/Customer/115310627314723",
      created_at: now.iso,
      updated_at: now.iso,
      state: "disabled",
      verified_email: true,
      currency: "USD",
      note: null,
      phone: null,
      tags: ""
    })),
    event("app/uninstalled", (now) => ({
      id: 548_380_009,
      name: "Example store",
      email: "owner@example.com",
      domain: "example-store.myshopify.com",
      country: "US",
      currency: "USD",
      plan_name: "partner_test",
      created_at: now.iso,
      updated_at: now.iso
    }))
  ]
}
