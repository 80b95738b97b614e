import { useState } from 'preact/hooks'
import { useCall } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { explain } from '../copy/errors.ts'
import { settings } from '../copy/settings.ts'
import { ago } from '../lib/time.ts'
import { Confirm } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { Switch } from '../ui/field.tsx'
import { Page } from '../ui/page.tsx'
import { Resource } from '../ui/resource.tsx'
import { toast } from '../ui/toast.tsx'
import { Words } from '../ui/words.tsx'

export default function SettingsPage() {
  const state = useCall('app_settings_get', {})
  const [isAsking, ask] = useState(false)
  const update = useSend('app_settings_update', {
    spoils: ['app_settings_get'],
    done: (_, { open_signup }) => toast(open_signup ? settings.opened : settings.closed),
  })
  const set = async (open_signup: boolean): Promise<void> => {
    if (await update.send({ open_signup })) ask(false)
  }
  return (
    <Page title={settings.title}>
      <Resource of={state}>
        {({ settings: { open_signup, updated_at, updated_by_username } }) => (
          <section class="card stack-tight">
            <div class="row is-single">
              <div class="grow">
                <h2>{settings.signup}</h2>
                <p class="soft">{settings.signup_about}</p>
              </div>
              <span class="push">
                <Switch
                  label={settings.signup}
                  checked={open_signup}
                  isBusy={update.isBusy}
                  onChange={(is) => (is ? ask(true) : void set(false))}
                />
              </span>
            </div>
            {updated_at && <p class="soft small">{settings.changed(updated_by_username, ago(updated_at))}</p>}
            <Fault text={update.error && !isAsking ? explain(update.error) : null} />
          </section>
        )}
      </Resource>
      <p class="soft">
        <Words>{settings.rest}</Words>
      </p>
      {isAsking && (
        <Confirm
          title={settings.open_question}
          verb={settings.open_verb}
          kind="primary"
          onConfirm={() => void set(true)}
          onClose={() => ask(false)}
          of={update}
        >
          <p>{settings.open_about}</p>
        </Confirm>
      )}
    </Page>
  )
}
