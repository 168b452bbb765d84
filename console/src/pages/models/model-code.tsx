import { Code, SegmentedControl, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ModelDetails } from '../../api/models.ts';
import { settingsQuery } from '../../api/settings.ts';
import { CodeBlock } from '../../components/code-block.tsx';
import { type CodeLanguage, codeLanguages } from '../playground/code-snippets.ts';
import { sampleCode } from './sample-code.ts';

/** A first request for a model as a program, with this gateway's own address. */
export function ModelCode({ model }: { model: ModelDetails }) {
  const [language, setLanguage] = useState<CodeLanguage>('curl');
  const settings = useQuery(settingsQuery);
  const code = sampleCode(language, settings.data?.base_url ?? location.origin, model);
  return (
    <Stack gap="sm">
      <SegmentedControl
        aria-label="Language"
        data={[...codeLanguages]}
        value={language}
        onChange={(value) => setLanguage(value as CodeLanguage)}
        style={{ alignSelf: 'flex-start' }}
      />
      <Text size="sm" c="dimmed">
        The code reads your key from the environment variable <Code>SLUICE_API_KEY</Code>.
      </Text>
      <CodeBlock code={code} label={`A request in ${language}`} />
    </Stack>
  );
}
