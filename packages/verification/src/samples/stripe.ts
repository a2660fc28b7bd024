import type { Moment, Sample, Samples } from "./Sample.ts"

const event = (type: string, object: (now: Moment) => ReturnType<Sample["body"]>): Sample => ({
  event: type,
  body: (now) => ({
    id: `evt_${now.id(24)}`,
    object: "event",
    api_version: "2025-03-31.basil",
    created: now.seconds,
    data: { object: object(now) },
    livemode: false,
    pending_webhooks: 1,
    request: { id: `req_${now.id(14)}`, idempotency_key: now.uuid() },
    type
  })
})

const paymentIntent = (now: Moment, rest: ReturnType<Sample["body"]>) => ({
  id: `pi_${now.id(24)}`,
  object: "payment_intent",
  amount: 2000,
  amount_capturable: 0,
  amount_received: 0,
  capture_method: "automatic_async",
  created: now.seconds,
  currency: "usd",
  customer: null,
  description: "A sample payment",
  last_payment_error: null,
  latest_charge: `ch_${now.id(24)}`,
  livemode: false,
  metadata: { order_id: "6735" },
  payment_method: `pm_${now.id(24)}`,
  payment_method_types: ["card"],
  receipt_email: null,
  ...rest
})

export const stripe: Samples = {
  type: "STRIPE",
  documentation: "https://docs.stripe.com/api/events/types",
  posts: "json",
  samples: [
    event("payment_intent.succeeded", (now) => paymentIntent(now, { amount_received: 2000, status: "succeeded" })),
    event("payment_intent.payment_failed", (now) =>
      paymentIntent(now, {
        last_payment_error: {
          code: "card_declined",
          decline_code: "generic_decline",
          message: "Your card was declined.",
          type: "card_error"
        },
        status: "requires_payment_method"
      })
    ),
    event("checkout.session.completed", (now) => ({
      id: `cs_test_${now.id(58)}`,
      object: "checkout.session",
      amount_subtotal: 2000,
      amount_total: 2000,
      cancel_url: "https://shop.example.com/cancel",
      client_reference_id: "order-6735",
      created: now.seconds,
      currency: "usd",
      customer: `cus_${now.id(14)}`,
      customer_details: { address: null, email: "ada@example.com", name: "Ada Lovelace", phone: null },
      livemode: false,
      metadata: {},
      mode: "payment",
      payment_intent: `pi_${now.id(24)}`,
      payment_status: "paid",
      status: "complete",
      success_url: "https://shop.example.com/success"
    })),
    event("charge.refunded", (now) => ({
      id: `ch_${now.id(24)}`,
      object: "charge",
      amount: 2000,
      amount_captured: 2000,
      amount_refunded: 2000,
      captured: true,
      created: now.seconds,
      currency: "usd",
      customer: null,
      livemode: false,
      metadata: { order_id: "6735" },
      paid: true,
      payment_intent: `pi_${now.id(24)}`,
      refunded: true,
      status: "succeeded"
    })),
    event("customer.subscription.updated", (now) => ({
      id: `sub_${now.id(24)}`,
      object: "subscription",
      cancel_at_period_end: false,
      collection_method: "charge_automatically",
      created: now.seconds,
      currency: "usd",
      customer: `cus_${now.id(14)}`,
      items: {
        object: "list",
        data: [
          {
            id: `si_${now.id(14)}`,
            object: "subscription_item",
            current_period_end: now.seconds + 2_592_000,
            current_period_start: now.seconds,
            price: {
              id: `price_${now.id(24)}`,
              object: "price",
              currency: "usd",
              recurring: { interval: "month", interval_count: 1 },
              unit_amount: 2000
            },
            quantity: 1
          }
        ],
        has_more: false
      },
      livemode: false,
      metadata: {},
      status: "active"
    })),
    event("invoice.paid", (now) => ({
      id: `in_${now.id(24)}`,
      object: "invoice",
      amount_due: 2000,
      amount_paid: 2000,
      amount_remaining: 0,
      billing_reason: "subscription_cycle",
      collection_method: "charge_automatically",
      created: now.seconds,
      currency: "usd",
      customer: `cus_${now.id(14)}`,
      customer_email: "ada@example.com",
      livemode: false,
      number: "A1B2C3D4-0001",
      status: "paid",
      subtotal: 2000,
      total: 2000
    }))
  ]
}
