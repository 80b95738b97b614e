import { expect, it } from 'vitest'
import { consoleForFile, person } from './browser.ts'

const test = await consoleForFile()
const [hourMs, dayMs] = [3_600_000, 86_400_000]

it.each([30, -30])(
  'a browser whose clock is %i hours ahead shows and sends the ends that hold',
  async (hours) => {
    const ada = await test.account({ username: 'ada', roles: ['admin'] })
    await ada.client.invite_create({
      email: 'grace@example.com',
      expires_at: new Date(Date.now() + dayMs).toISOString(),
    })
    const page = await person(test, ada.cookie)
    await page.clock.install({ time: Date.now() + hours * hourMs })
    await page.clock.resume()
    await page.goto('/admin/invites')
    await page.getByRole('row').filter({ hasText: 'grace@example.com' }).getByText('waiting').waitFor()
    await page.getByRole('button', { name: 'Invite', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('E-mail').fill('bob@example.com')
    await dialog.getByLabel('Ends').selectOption('1')
    await dialog.getByRole('button').last().click()
    await page.getByRole('row').filter({ hasText: 'bob@example.com' }).getByText('waiting').waitFor()
    const { invites } = await ada.client.invite_list()
    const sent = invites.find(({ email }) => email === 'bob@example.com')
    expect(Math.abs(Date.parse(sent?.expires_at ?? '') - Date.now() - dayMs)).toBeLessThan(hourMs)
    await page.goto('/admin/status')
    await page
      .getByText(`This browser is 30 hours ${hours > 0 ? 'ahead of' : 'behind'} the server.`)
      .waitFor()
  },
)
