import { expect, it } from 'vitest'
import { tokenOf } from '../../test/helpers/outbox.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { operate } from '../core/operate.ts'
import { sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import type { Message } from '../registry/messages.ts'
import { findTicket, useTicket } from './redeem.ts'
import { makeTicket } from './tickets.ts'

const sent: Message[] = []
const test = await serviceForFile({ deliver: (message) => void sent.push(message) })
const { app } = test.service
const operator = { via: 'testing' }

const make = (
  account_id: string,
  delivery: 'mailed' | 'revealed' = 'revealed',
  email: string | null = null,
) =>
  operate(app, 'ticket_create', operator, (work) =>
    makeTicket(app, work, {
      ...{ purpose: 'password_reset', account_id, delivery, email, email_key: email },
      ...{ created_by: null, detail: work.detail },
    }),
  )
const find = (link: string) => findTicket(app, tokenOf(link), ['password_reset'])
const gone = { data: { reason: 'ticket_not_found' } }

it('a ticket is found by its token and used once', async () => {
  const { id } = await test.account()
  const { ticket, link } = await make(id)
  expect(link).toMatch(/^http:\/\/localhost\/admin\/link#ticket=secret_svc_ticket_[\w-]{43}$/)
  const found = await find(link)
  expect(found).toMatchObject({ id: ticket.id, account_id: id, purpose: 'password_reset' })
  await app.db.transaction((db) => useTicket(db, found))
  await expect(find(link)).rejects.toMatchObject(gone)
  await expect(app.db.transaction((db) => useTicket(db, found))).rejects.toMatchObject(gone)
})

it('the fourth open ticket ends the oldest', async () => {
  const { id } = await test.account()
  const links = []
  for (let i = 0; i < 4; i++) links.push((await make(id)).link)
  await expect(find(links[0] as string)).rejects.toMatchObject(gone)
  for (const link of links.slice(1)) await find(link)
})

it('queues a message with its ticket, and a notice only to a verified address', async () => {
  const { id } = await test.account({ email: 'a@x.io' })
  await make(id, 'mailed', 'a@x.io')
  await operate(app, 'ticket_create', operator, (work) => notify(app, work, id, 'password_changed'))
  await test.service.operations.verifyEmail({ account_id: id }, operator)
  await operate(app, 'ticket_create', operator, (work) => notify(app, work, id, 'email_changed'))
  const rows = await app.db.rows(sql`
    select purpose, notice from message_outbox where account_id = ${id}::uuid order by created_at`)
  expect(rows).toEqual([
    { purpose: 'password_reset', notice: null },
    { purpose: 'notice', notice: 'email_changed' },
  ])
})
