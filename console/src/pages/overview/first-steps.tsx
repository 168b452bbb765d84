import { Anchor, Button, List, Stack, Text, ThemeIcon } from '@mantine/core';
import { IconChartBarOff, IconCheck, IconKey, IconTerminal2 } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ApiKey } from '../../api/keys.ts';
import { useList } from '../../api/lists.ts';
import { modelsQuery } from '../../api/models.ts';
import { settingsQuery } from '../../api/settings.ts';
import { Card } from '../../components/card.tsx';
import { CodeBlock } from '../../components/code-block.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { TextLink } from '../../components/text-link.tsx';

/** Instructions for a new account: create a key, call the gateway with it. */
export function FirstSteps() {
  const keys = useList<ApiKey>('/keys', {}, { pageSize: 10 });
  const hasKey = keys.rows.some((key) => key.status === 'active' && key.kind === 'standard');
  if (keys.rows.some((key) => key.last_used_at !== null)) {
    return (
      <Card>
        <EmptyState title="No requests in this period" icon={IconChartBarOff}>
          Your keys were used before: choose a longer period.
        </EmptyState>
      </Card>
    );
  }
  return (
    <Card title="No requests in this period">
      <Text c="dimmed" size="sm" mb="md">
        Two steps to the first one; what it took and cost then shows here. To look at models first, try the{' '}
        <TextLink to="/playground">playground</TextLink>.
      </Text>
      <List
        spacing="lg"
        center={false}
        size="sm"
        styles={{
          itemWrapper: { width: '100%', alignItems: 'flex-start' },
          itemIcon: { marginTop: 0 },
          itemLabel: { flex: 1, minWidth: 0 },
        }}
      >
        <List.Item icon={<StepIcon isDone={hasKey} icon={<IconKey size={18} />} />}>
          <Stack gap="xs" align="flex-start">
            <Text fw={600}>{hasKey ? 'You have a key' : 'Create an API key'}</Text>
            <Button
              size="xs"
              variant={hasKey ? 'default' : 'filled'}
              renderRoot={(props) => <Link to="/keys" search={hasKey ? {} : { create: true }} {...props} />}
            >
              {hasKey ? 'See the keys' : 'Create a key'}
            </Button>
          </Stack>
        </List.Item>
        <List.Item icon={<StepIcon isDone={false} icon={<IconTerminal2 size={18} />} />}>
          <Stack gap="xs">
            <Text fw={600}>Call the gateway with it</Text>
            <CurlExample />
            <Text c="dimmed">
              Any OpenAI client works too: give it the base URL and the key.{' '}
              <Anchor href="/" inherit underline="always">
                The start page
              </Anchor>{' '}
              shows more.
            </Text>
          </Stack>
        </List.Item>
      </List>
    </Card>
  );
}

function StepIcon({ isDone, icon }: { isDone: boolean; icon: React.ReactNode }) {
  return (
    <ThemeIcon variant="light" radius="xl" size={32} color={isDone ? 'green' : 'sluice'} aria-hidden>
      {isDone ? <IconCheck size={18} /> : icon}
    </ThemeIcon>
  );
}

/** A shell command with this gateway's own address and an available model. */
function CurlExample() {
  const settings = useQuery(settingsQuery);
  const models = useQuery(modelsQuery);
  const chat = models.data?.filter((model) => model.capability === 'chat' && model.available) ?? [];
  const model = (chat.find(({ id }) => id.startsWith('sandbox')) ?? chat[0])?.id ?? 'MODEL';
  const base = settings.data?.base_url ?? window.location.origin;
  const code = `curl ${base}/v1/chat/completions \\
  -H "Authorization: Bearer $SLUICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"model":"${model}","messages":[{"role":"user","content":"Hello!"}]}'`;
  return <CodeBlock code={code} label="Example for curl" />;
}
