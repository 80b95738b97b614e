import { expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { testService } from '../testing/index.ts'

const test = await serviceForFile()

it('tells anyone what there is to sign in with; little without settings', async () => {
  expect(await test.client().account.options()).toEqual({
    signup: 'invite',
    invite_claim: 'match',
    recovery: false,
    passkeys: false,
    second_factor: true,
    password_min: 12,
    providers: [],
  })
})

it('follows the settings of signup', async () => {
  await test.service.operations.setSettings({ open_signup: true }, { via: 'cli' })
  expect(await test.client().account.options()).toMatchObject({ signup: 'open' })
  await using closed = await testService({ signup: false })
  expect(await closed.client().account.options()).toMatchObject({ signup: 'off' })
})

it('is not for pages of other origins', async () => {
  const headers = { origin: 'https://evil.example' }
  expect((await send(test, 'GET /options', { headers })).status).toBe(403)
})
