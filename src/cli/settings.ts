import type { AppSettings } from '../settings/settings.ts'
import { group, subcommand, WrongUsage } from './command.ts'
import { cli, withService } from './with-service.ts'

const described = ({ open_signup, updated_at, updated_by_username }: AppSettings) => ({
  open_signup,
  changed: updated_at,
  'changed by': updated_by_username,
})

const get = subcommand('settings', {
  name: 'get',
  summary: 'The settings that admins may change while the server runs.',
  run: ({ out, io }) =>
    withService(io, async ({ operations }) => {
      const settings = await operations.getSettings()
      out.result(settings, described(settings))
    }),
})

const set = subcommand('settings', {
  name: 'set',
  usage: 'open_signup (true|false)',
  args: 2,
  summary: 'Let everybody sign up, or only who is invited; it binds the next request on every server.',
  run: async ({ args: [name, value], out, io }) => {
    if (name !== 'open_signup' || (value !== 'true' && value !== 'false'))
      throw new WrongUsage('The one setting is open_signup, true or false.')
    await withService(io, async ({ operations }) => {
      const settings = await operations.setSettings({ open_signup: value === 'true' }, cli)
      out.result(settings, described(settings))
    })
  },
})

export const settings = group({
  name: 'settings',
  summary: 'Who may sign up. (`cellkeep config` shows the configuration of the server.)',
  details: 'Example:\n  cellkeep settings set open_signup true',
  commands: [get, set],
})
