//! The table of all languages that samestory distinguishes, one row each.
//!
//! To add one, append a row. `words` are function words (and some that news cannot do without), `letters` the
//! ones beyond a to z in its own words; both as normalised text spells them. `coverage` is the fraction of
//! running words in its news that are in the list, as reported by `samestory languages --measure`. A language
//! that is alone in its script needs none of these. `home` is for relatives whose edited copies would
//! otherwise be separated.

use super::script::Script;
use super::{Language, Segmentation};
use crate::model::Lang;

/// The defaults of most rows: words separated by spaces, three words per shingle. For scripts without spaces,
/// five characters per shingle cover about as much text.
const SPACED: Language = Language {
    lang: Lang::UND,
    home: None,
    name: "undetermined",
    aliases: &[],
    scripts: &[],
    segment: Segmentation::Words,
    shingle: 3,
    words: "",
    coverage: 0.0,
    letters: "",
    sample: "",
};

/// All languages that samestory distinguishes. The first row is `und`, for everything else.
pub const LANGUAGES: &[Language] = &[
    SPACED,
    Language {
        lang: Lang::from_table("en"),
        name: "English",
        aliases: &["eng"],
        scripts: &[Script::Latin],
        words: "the of and to in a is that for it was on with as be by he at his this had not are but from or have \
         an they which were their been has its who will would said she her we you more when there than \
         after about s time out one i year also can so over what some up if people now two before only our \
         last new no all into while could through first other many most because these any between under \
         during per vs him them me my your us then just like how where did do does may might should must \
         against such own same being both each here off very down even much still too well way back good \
         made make take get go know work another around government president company companies market \
         markets million billion percent share shares net profit loss sales quarter month months week weeks \
         day days years today yesterday bank trade rate price prices growth tax income revenue dividend \
         record stock police court minister state states country city national international american \
         british world public official officials report reported told according called including expected \
         announced team game games season won win lost points league match goal coach players second third \
         half three four five six seven eight nine ten hundred man men women children school university \
         students research north south east west united january february march april june july august \
         september october november december monday tuesday wednesday thursday friday saturday sunday \
         health service group members part end since without until near high low long next held used power \
         system party election vote law war military army killed home house",
        coverage: 0.53,
        letters: "é",
        sample: "The city council said on Monday that the old bridge would be closed for repairs, and that buses \
         would run until the work was done.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("hi"),
        name: "Hindi",
        aliases: &["hin"],
        scripts: &[Script::Devanagari],
        words: "के है में की से का को और ने पर यह कि भी हैं नहीं लिए इस एक कर हो गया तो साथ ही कहा था जो या रहे थे किया अपने \
         बाद करने उन्होंने जाता वह तक थी दिया होने गई अब लेकिन रहा वे हुए वाले कुछ बताया पहले समय जब करते अपनी गए बहुत \
         उन्हें उनके लोगों करना सकता जा द्वारा उस कई रही जाने वाली हुई किए उसे कोई फिर उसके बारे क्योंकि तरह दो हम मैं \
         किसी उन अनुसार इसके सकते बीच न दी होगा हुआ क्या लोग देने वाला उनकी हालांकि होती सकती आप करता जिस जैसे इसे \
         होता इसकी हूं हूँ",
        coverage: 0.48,
        letters: "ंःअआइईउऊऋएऐओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसहािीुूृेैोौ्ॐऽ़ँऑॉ",
        sample: "नगर निगम ने सोमवार को कहा कि पुराने पुल की मरम्मत के लिए उसे बंद किया जाएगा और काम पूरा होने तक बसें दूसरे रास्ते \
         से चलेंगी।",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("bn"),
        name: "Bengali",
        aliases: &["ben"],
        scripts: &[Script::Bengali],
        sample: "নগর কর্তৃপক্ষ সোমবার জানিয়েছে, মেরামতের জন্য পুরোনো সেতুটি বন্ধ থাকবে এবং কাজ শেষ না হওয়া পর্যন্ত বাস অন্য \
         পথে চলবে।",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("mr"),
        name: "Marathi",
        aliases: &["mar"],
        scripts: &[Script::Devanagari],
        words: "आहे आणि या च्या ते की व हे आहेत तर त्यांनी केली होते मात्र असे ही एक करण्यात होती येथे झाली नाही \
         त्या यांनी होता केले तो केला काही सांगितले मध्ये आला म्हणून पण साठी आले अशी त्यांच्या असल्याचे \
         झाले असून एका देखील हा परंतु करत म्हणाले जे करण्यासाठी त्याच्या मी अधिक त्यांना आपल्या आता कारण \
         अनेक यांच्या त्याला अशा केवळ करून असताना असलेल्या तेव्हा झाला म्हणजे आली दोन आपण किंवा केलेल्या \
         जात असेल म्हटले मला यांना मोठ्या आणखी शकतो त्याने करू नाहीत म्हणाला काय होत असा दिली दिला गेली \
         घेतली तसेच येत सर्व खूप होणार तुम्ही तुमच्या असते असतात करा येईल जाते त्यामुळे करणे झालेल्या कमी \
         पुढे सांगितलं पुन्हा असं प्रयत्न बाहेर आम्ही शनिवारी त्यांचे वाटते नंतर अतिशय सुरु भाग गेले आपले \
         गेल्या मदत ती त्यांची तीन सामना आहोत काम जेव्हा होईल पुढील ट्रम्प दुसऱ्या मागे ज्यामुळे संपूर्ण \
         वाटत आपला केलं करण्याच्या ज्या करणाऱ्या प्रत्येक आमच्या वर्षी का तरी होऊ दिले आशा मागील जास्त इतर \
         होतो अंतिम वेळ लोक इथे लोकांना सर्वोच्च त्याचा अत्यंत त्याचे त्यांचा येथील स्वतःला कोणत्याही मत \
         अन्य देण्यासाठी दिसून याची लोकांनी तथापि व्या मते जिथे परत चार संख्या ला देत आपली वर्षीय करतात सहा \
         घोषणा घेतले सर्वात म्हणाल्या करतील याचा अर्थ घेतला ज्यांनी शकतात आठवड्यात स्थानिक करणार अध्यक्ष \
         उत्तर कायम",
        coverage: 0.32,
        letters: "ंःअआइईउऊऋएऐओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसहािीुूृेैोौ्ॐऽळऱॲऍॅऑॉ",
        sample: "जुना पूल दुरुस्तीसाठी बंद ठेवण्यात येणार आहे आणि काम पूर्ण होईपर्यंत बस दुसऱ्या मार्गाने धावतील, असे महापालिकेने \
         सोमवारी सांगितले.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("ta"),
        name: "Tamil",
        aliases: &["tam"],
        scripts: &[Script::Tamil],
        sample: "பழைய பாலம் பழுதுபார்ப்பதற்காக மூடப்படும் என்றும், பணிகள் முடியும் வரை பேருந்துகள் வேறு பாதையில் இயங்கும் என்றும் \
         மாநகராட்சி தெரிவித்துள்ளது.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("te"),
        name: "Telugu",
        aliases: &["tel"],
        scripts: &[Script::Telugu],
        sample: "పాత వంతెనను మరమ్మతుల కోసం మూసివేస్తామని, పనులు పూర్తయ్యే వరకు బస్సులు వేరే దారిలో నడుస్తాయని నగరపాలక సంస్థ సోమవారం తెలిపింది.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("ml"),
        name: "Malayalam",
        aliases: &["mal"],
        scripts: &[Script::Malayalam],
        sample: "പഴയ പാലം അറ്റകുറ്റപ്പണികൾക്കായി അടച്ചിടുമെന്നും പണി തീരുന്നതുവരെ ബസുകൾ മറ്റൊരു വഴിയിലൂടെ ഓടുമെന്നും നഗരസഭ തിങ്കളാഴ്ച \
         അറിയിച്ചു.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("gu"),
        name: "Gujarati",
        aliases: &["guj"],
        scripts: &[Script::Gujarati],
        sample: "જૂનો પુલ સમારકામ માટે બંધ રહેશે અને કામ પૂરું ન થાય ત્યાં સુધી બસો બીજા રસ્તે દોડશે, એમ મહાનગરપાલિકાએ સોમવારે \
         જણાવ્યું હતું.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("or"),
        name: "Odia",
        aliases: &["ori", "ory"],
        scripts: &[Script::Odia],
        sample: "ପୁରୁଣା ପୋଲଟି ମରାମତି ପାଇଁ ବନ୍ଦ ରହିବ ଏବଂ କାମ ସରିବା ପର୍ଯ୍ୟନ୍ତ ବସଗୁଡ଼ିକ ଅନ୍ୟ ରାସ୍ତାରେ ଚାଲିବ ବୋଲି ନଗର ନିଗମ ସୋମବାର କହିଛି।",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("pa"),
        name: "Punjabi",
        aliases: &["pan"],
        scripts: &[Script::Gurmukhi],
        sample: "ਨਗਰ ਨਿਗਮ ਨੇ ਸੋਮਵਾਰ ਨੂੰ ਕਿਹਾ ਕਿ ਪੁਰਾਣਾ ਪੁਲ ਮੁਰੰਮਤ ਲਈ ਬੰਦ ਰਹੇਗਾ ਅਤੇ ਕੰਮ ਪੂਰਾ ਹੋਣ ਤੱਕ ਬੱਸਾਂ ਦੂਜੇ ਰਾਹ ਤੋਂ ਚੱਲਣਗੀਆਂ।",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("ur"),
        name: "Urdu",
        aliases: &["urd"],
        scripts: &[Script::Arabic],
        words: "کے میں کی ہے اور سے کا کو نے کہ پر اس ہیں یہ بھی نہیں ایک ان ہو تھا جو تو لیے کر گیا وہ ہی کہا \
         ساتھ بعد جا رہا کیا تھے گئی اپنے کچھ ہوئے تک دیا رہے کرنے تھی طور لیکن لئے جس ہونے وقت گا اپنی \
         والے کرتے انہوں زیادہ کرنا جب بتایا گے بارے مطابق ہوا ہوں ہم اب دی جانب صرف گی اسے بات والی مزید \
         ہوئی کسی یا پہلے کیے جائے ایسے کریں بہت تاہم دو جبکہ ہر کئی گئے رہی نہ اگر سکتا کوئی آپ جن دوران \
         طرح جاتا سکتے سب کیونکہ",
        coverage: 0.49,
        letters: "اآبپتٹثجچحخدڈذرڑزژسشصضطظعغفقکگلمنںوہھءیےئؤأۂۓۃًٌٍَُِّْ",
        sample: "شہری انتظامیہ نے پیر کو کہا کہ پرانا پل مرمت کے لیے بند رہے گا اور کام مکمل ہونے تک بسیں دوسرے \
         راستے سے چلیں گی۔",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("ne"),
        name: "Nepali",
        aliases: &["nep", "npi"],
        scripts: &[Script::Devanagari],
        words: "र छ को मा पनि छन् हो गरेको भएको यो लागि गर्ने भने थियो तथा गरेका हुने उनले ले लाई भन्ने एक यस बताए \
         गर्न त्यो भए गरी तर हुन्छ नेपाल रहेको गरिएको सबै नै थिए छैन दिएको उहाँ भन्दै कि धेरै जसले रूपमा \
         आफ्नो एउटा दिन भन्दा गर्दा जुन केही उहाँले म भयो अनुसार गर्यो वा गरे कुनै मात्र हामीले बढी हामी \
         हुन गर्नुभयो गर्दै हाम्रो के उनको नयाँ ठूलो अहिले पहिलो अगाडि सक्छ भएका मलाई उसको मेरो यदि यसको \
         भनेको का मैले जसमा राम्रो अर्को त्यहाँ भनेर जस्तो गरिने नेपालको काठमाडौं भएकाले जना सम्म बाट गरेर \
         हुँदै आएको जनाएको लगायत साथै पछि अघि हुनेछ भनिएको उनी भन्नुभयो कुरा काम जब वर्ष बारेमा गर्छ बाहिर \
         तिनीहरू अन्य अन्तिम दुई जो तिनीहरूले पहिले उहाँको उच्च देखि गरिरहेको प्राप्त प्रयास गत जारी हुन् \
         उसले थाहा जस्तै भनी लामो दोस्रो समय त्यसपछि अझै उनीहरूको पटक सार्वजनिक सहित यसलाई यी जसलाई तीन \
         भन्यो छौं बताउनुभयो सन् गर् सबैभन्दा रुपमा केहि यसले तिनीहरूलाई परिवर्तन उनलाई थप राष्ट्रपति महिना \
         सामना शनिबार साथमा मध्ये घोषणा आशा ती त्यसैले गर्नुभएको कहिल्यै अपेक्षा कारण हप्ता औं पूर्ण जहाँ \
         मद्दत अब जस्ता प्रयोग क्षेत्रमा विश्वास समस्या आरोप हरेक पूर्व कम आउने गर्नु निश्चित एकदमै बारे \
         समावेश रहेका मुख्य भएर द्वारा अवस्थामा सफल दिन्छ दिनुभयो घर अमेरिकी गरिरहेका",
        coverage: 0.33,
        letters: "ंःअआइईउऊऋएऐओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसहािीुूृेैोौ्ॐऽँ",
        sample: "पुरानो पुल मर्मतका लागि बन्द हुने र काम नसकिएसम्म बसहरू अर्को बाटोबाट चल्ने नगरपालिकाले सोमबार जनाएको छ।",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("kn"),
        name: "Kannada",
        aliases: &["kan"],
        scripts: &[Script::Kannada],
        sample: "ಹಳೆಯ ಸೇತುವೆಯನ್ನು ದುರಸ್ತಿಗಾಗಿ ಮುಚ್ಚಲಾಗುವುದು ಮತ್ತು ಕೆಲಸ ಮುಗಿಯುವವರೆಗೆ ಬಸ್ಸುಗಳು ಬೇರೆ ದಾರಿಯಲ್ಲಿ ಸಂಚರಿಸಲಿವೆ ಎಂದು ನಗರಸಭೆ \
         ಸೋಮವಾರ ತಿಳಿಸಿದೆ.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("ja"),
        name: "Japanese",
        aliases: &["jpn"],
        scripts: &[Script::Kana, Script::Han],
        segment: Segmentation::Characters,
        shingle: 5,
        sample: "市は月曜日、古い橋を修理のために閉鎖し、工事が終わるまでバスは別の道を走ると発表した。",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("zh"),
        name: "Chinese",
        aliases: &["zho", "chi", "cmn", "yue"],
        scripts: &[Script::Han],
        segment: Segmentation::Characters,
        shingle: 5,
        sample: "市政府星期一表示，旧桥将关闭维修，在工程结束之前公共汽车将改走其他路线。",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("ko"),
        name: "Korean",
        aliases: &["kor"],
        scripts: &[Script::Hangul],
        sample: "시는 월요일에 낡은 다리를 수리하기 위해 폐쇄하고 공사가 끝날 때까지 버스가 다른 길로 다닐 \
         것이라고 밝혔다.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("th"),
        name: "Thai",
        aliases: &["tha"],
        scripts: &[Script::Thai],
        segment: Segmentation::Characters,
        shingle: 5,
        sample: "เทศบาลเมืองแถลงเมื่อวันจันทร์ว่าสะพานเก่าจะปิดซ่อมแซม และรถประจำทางจะวิ่งเส้นทางอื่นจนกว่างานจะแล้วเสร็จ",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("vi"),
        name: "Vietnamese",
        aliases: &["vie"],
        scripts: &[Script::Latin],
        words: "và của là có không cho được các một trong những với đã người này để khi đến từ ở cũng vào như ra \
         về đó sẽ nhiều còn tại năm theo sau nhưng hơn bị phải lại ông trên việc hai bà chỉ nước đang sự \
         thể rằng thứ điều trước họ hiện cuộc nói cách biết tôi đầu ngày chính tới nhà số chúng mình thành \
         đưa đây anh vì cả do mà nhất làm thế qua khác đi vẫn cùng lần mới rất nào",
        coverage: 0.37,
        letters: "àáâãèéêìíòóôõùúýăđĩũơưạ",
        sample: "Chính quyền thành phố cho biết hôm thứ Hai rằng cây cầu cũ sẽ bị đóng để sửa chữa và xe buýt sẽ \
         chạy đường khác cho đến khi công việc hoàn tất.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("id"),
        name: "Indonesian",
        aliases: &["in", "ind"],
        scripts: &[Script::Latin],
        words: "yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke karena tersebut bisa ada \
         mereka lebih kata telah oleh sebagai menjadi kami bahwa atau saat seorang adalah dia tahun sudah \
         para antara hanya banyak namun harus ia masih bahkan yakni terkait adanya pria kota kondisi kasus \
         informasi eropa inggris prancis serikat miliar persen klub pelatih sekretaris departemen komite \
         pengadilan suara pemilihan pertandingan sakit anggota warga situs kemudian dilakukan sejak bukan \
         pemerintah polisi perusahaan kantor mobil uang olahraga mantan tapi universitas pengacara agustus \
         maret juni juli rupiah jabatan tim tiap soal belum cuma usai sejumlah mulai pukul rabu senin \
         selasa hari beberapa mengatakan orang setelah satu dapat sangat sebuah hal secara selama seperti \
         sedang kepada melakukan bagi terjadi apa tetapi jika dua lalu baru waktu lainnya tentang hingga \
         sebelum menurut mungkin ketika berada baik sekarang merupakan seluruh terhadap pertama memiliki \
         kali sehingga ujar agar serta maupun pun",
        coverage: 0.39,
        letters: "é",
        sample: "Pemerintah kota mengatakan pada hari Senin bahwa jembatan tua itu akan ditutup karena perbaikan \
         dan bus akan melewati jalan lain sampai pekerjaan selesai.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("ar"),
        name: "Arabic",
        aliases: &["ara", "arb"],
        scripts: &[Script::Arabic],
        words: "في من على أن إلى التي عن مع هذا ما هذه كان لا الذي بعد قال كما لم أو بين كل وقد قد ذلك هو هي إن \
         خلال كانت ولا حيث وفي حتى عند منذ غير ومن وقال أنه عام اليوم أي تم ان الى يوم قبل لقد وهو أكثر أحد \
         هناك أيضا ولكن الآن إنه بعض الماضي بأنه الذين إذا بها بسبب أمام فقط لكن مثل أثناء عندما مما وهي به \
         له فيها فيه عليه منها وأن ليس كذلك نحو أيضا جميع التى الي علي يمكن المتحدة بشأن بأن الأمر أيض وقت \
         السبت والتي تلك تكون أخرى بالنسبة عليها كبير أنها لن العام مرة وفق والذي بما الرغم كبيرة الرئيس \
         الوقت فقد سي فريق بشكل عبر الأشخاص الأسبوع الأول شيء ترامب العمر للغاية ولكنه آخر بينما شخص بي \
         الجمعة ضد الأخيرة العديد نفسه حول خارج بمثابة حق قام وتم ثم وكان يزال ظهر الأمريكي يكون قائل \
         العامة وجود يونيو جانب وأضاف إدارة السيد عدد يبلغ حد الطريقة الأوروبي الساعة منطقة حدث الشرطة \
         السيدة يتم الأولى إليه يجب الكثير الأخرى أجل الفريق الحكومة وهذا باسم تحت طوال الناس لها الثاني \
         أكبر الولايات موقع ولم كنت ذكر المنطقة الأحد جد مباراة",
        coverage: 0.31,
        letters: "ابتثجحخدذرزسشصضطظعغفقكلمنهويءآأؤإئىةًٌٍَُِّْ",
        sample: "قال مجلس المدينة يوم الاثنين إن الجسر القديم سيغلق من أجل الإصلاحات وإن الحافلات ستسير في طريق \
         آخر حتى انتهاء العمل.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("fa"),
        name: "Persian",
        aliases: &["fas", "per", "pes", "prs"],
        scripts: &[Script::Arabic],
        words: "و در به از که این را با است برای آن یک تا شد بر خود هم کرد می بود نیز شده دو باید اما اند گفت کند \
         وی دارد هر بین پس ها خواهد یا شود سال ایران میشود کرده آنها كه روز مورد او های داد قرار اینکه حال \
         ما داده باشد داشت کنند یکی من روی توسط بعد قبل بوده میکند کردن پیش تنها دیگر هستند دارند عنوان \
         بیشتر چند نیست کردند بودند نظر صورت زمانی چه اگر همه شدهاست افزود ای اش میکنند",
        coverage: 0.39,
        letters: "اآبپتثجچحخدذرزژسشصضطظعغفقکگلمنوهیئءأؤۀًٌٍَُِّْ",
        sample: "شورای شهر روز دوشنبه اعلام کرد که پل قدیمی برای تعمیر بسته خواهد شد و اتوبوس‌ها تا پایان کار از \
         راه دیگری خواهند رفت.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("he"),
        name: "Hebrew",
        aliases: &["iw", "heb"],
        scripts: &[Script::Hebrew],
        words: "של את על לא הוא עם זה כי היא גם או אם אל בין כל אך היה יותר הם אבל לאחר אחרי כדי אין יש אותה אותם \
         בו בה כן ולא שאין שיש שלה שלהם שלנו לה לנו אחר אחרים כאשר מי למה איך פעם יום שנה שנים הזה הזאת אלה \
         עדיין מאז תחת ללא בשל עכשיו אמר ביום שהוא במהלך מה עד שלו ביותר אחד לפני לפי להיות כך עבור ידי שהם \
         אנחנו אני רק שלא אנשים זו הייתה כמו היו אמרה בכל הרבה לי שבו מאוד להם שהיא אלא אותו לו כבר וכי \
         לגבי בן פי במקום מספר שבת באופן האחרון מן דבר מול טראמפ זאת מכן שם לבית בית בשנה בשעה הראשונה \
         שעברה קשה כולל בעת כפי למרות חלק המדינה והוא ארה שני נראה ראשון הן במשך רבים בפני מוקדם כמה מחוץ \
         בסופו האחרונים זמן מחדש גדול אחת משהו שלי הבא המשפט נגד דומה ביוני לדברי שוב היום נקודות מיליון \
         בשבוע השנה כמעט כעת עוד איש שזה השבוע במשחק אמרו כמובן להשיג הראשון רב קו בשבת הנשיא חודשים חמישי \
         באותו להגיע משחק אז אדם נמצא פשוט לתת למנוע בדרך מבין שישי חושב השני כאן דקות בכך יכולים בלתי \
         בריטניה צריכים בגלל שבה",
        coverage: 0.26,
        sample: "עיריית העיר הודיעה ביום שני כי הגשר הישן ייסגר לצורך תיקונים וכי האוטובוסים ייסעו בדרך אחרת עד \
         לסיום העבודות.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("ru"),
        name: "Russian",
        aliases: &["rus"],
        scripts: &[Script::Cyrillic],
        words: "и в не на с что по как из за его это от к о для у то а но он до же так было все или также был была \
         если при уже только их году чтобы после она который мы более которые быть этом того время будет \
         они сказал том еще ещё когда я года со были чем говорит во тем этого своей ли может несколько об \
         является этой всего под без где ему ее её нас есть очень мне там лет субботу которая словам против \
         бы два которой им через один своего тех них людей свою утверждает своем должны будут пор этот свои \
         себя перед заявил могут числе именно последние тогда летний течение настоящее свое всех результате \
         этих рассказывает потому хотя сейчас других начале место спустя состоянии пятницу страны прошлом \
         раз эти которую пользу получил назад никогда день между неделе качестве больше стране нет три \
         человек времени дня особенно кто пока сообщает сделал вы найти ходе примерно решение которых такие \
         месяцев добавил дома первый теперь президент всегда организации войны него просто своих месяца \
         одно себе этим полиции благодаря второй долларов почти нашей одного над которого образом возможно \
         проблемы момент",
        coverage: 0.35,
        letters: "абвгдежзийклмнопрстуфхцчшщъыьэюяё",
        sample: "Городские власти сообщили в понедельник, что старый мост будет закрыт на ремонт и что до \
         окончания работ автобусы пойдут по другой дороге.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("uk"),
        name: "Ukrainian",
        aliases: &["ukr"],
        scripts: &[Script::Cyrillic],
        words: "і в на не з що та у до за як для це від про його але по а є був або які й також із він після було \
         року ще тому час при щоб буде під який вже бути їх була цього ми коли через того вони я сказав \
         може більше яка все те році один має перед оскільки де багато хто чи проте зараз проти так вона \
         людей її лише якщо тим цей ніж ви були нас себе дуже без між років яких тільки можна свою зі над \
         яку суботу цьому заявив раніше йому словами тих можуть свого цих інших протягом щодо день минулого \
         три той свій тижня зазначив їм сім знову отримав своєї якому чого яке початку два розповів команда \
         заявила ятницю одного кілька саме мені рішення інші підтримку додав адже роботу місяців них всі \
         тепер роки нього сказала річний країни майже участь добре місяця останні матчі якого можливість \
         будуть серед перший собі будь більш країні заявили свої зробити говорив зробив четвер часу просто \
         щось чоловіка повинні суду вдалося декілька повідомив потім доларів рік групи хоча результат далі \
         дійсно потрібно голосування проблеми червні швидко знайшли ці останніх місця своїх пізніше \
         допомогою пов виходу першу їхню",
        coverage: 0.35,
        letters: "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя",
        sample: "Міська рада повідомила в понеділок, що старий міст буде закрито на ремонт і що до кінця робіт \
         автобуси їхатимуть іншою дорогою.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("bg"),
        name: "Bulgarian",
        aliases: &["bul"],
        scripts: &[Script::Cyrillic],
        words: "на и да за се от в е с не че са по като ще до си при които това но след или беше който през няма \
         само вече има той още най към бе обаче бъде може те съм тази този което така която също му както \
         във когато преди време един каза много според пред повече докато трябва със а година години все \
         въпреки ако срещу няколко тези всички където някои как малко го какво заяви защото него тя ги им \
         били бил била под над около ли между",
        coverage: 0.40,
        letters: "абвгдежзийклмнопрстуфхцчшщъьюяѝ",
        sample: "Общината съобщи в понеделник, че старият мост ще бъде затворен за ремонт и че автобусите ще се \
         движат по друг път до края на работата.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("el"),
        name: "Greek",
        aliases: &["ell", "gre"],
        scripts: &[Script::Greek],
        sample: "Ο δήμος ανακοίνωσε τη Δευτέρα ότι η παλιά γέφυρα θα κλείσει για επισκευές και ότι τα λεωφορεία θα \
         περνούν από άλλο δρόμο μέχρι να τελειώσουν οι εργασίες.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("de"),
        name: "German",
        aliases: &["deu", "ger"],
        scripts: &[Script::Latin],
        words: "der die das und in den von zu mit sich des auf für ist im dem nicht ein eine als auch es an \
         werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum haben \
         nur oder aber vor zur bis mehr durch man war sein wurde sagte ich jedoch wir jahr seine diese was \
         wenn da wurden können laut während gegen hatte beim seiner ihren viele seinen kann unter ihre \
         zeit eines diesem habe waren vom immer seinem andere soll ihm ihr seit dieser schon worden uhr \
         damit",
        coverage: 0.43,
        letters: "äöü",
        sample: "Die Stadt hat am Montag mitgeteilt, dass die alte Brücke wegen Reparaturen gesperrt wird und dass \
         die Busse bis zum Ende der Arbeiten einen anderen Weg nehmen.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("fr"),
        name: "French",
        aliases: &["fra", "fre"],
        scripts: &[Script::Latin],
        words: "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont \
         avec cette aux son ont été mais comme ou leur nous elle être fait ses deux même d l s c qu n j y \
         à déclaré après sa avoir ans avait était selon ils tout lui je si bien où également lors dit ces \
         avant autres fois depuis aussi faire pendant très peut dont plusieurs leurs cela temps année \
         alors contre on entre sans encore sous ainsi",
        coverage: 0.50,
        letters: "àâæçéèêëîïôœùûü",
        sample: "La ville a annoncé lundi que le vieux pont serait fermé pour des réparations et que les bus \
         passeraient par une autre route jusqu’à la fin des travaux.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("es"),
        name: "Spanish",
        aliases: &["spa"],
        scripts: &[Script::Latin],
        words: "de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha \
         sin sobre este ya entre cuando todo esta ser son dos también fue había era muy hasta desde dijo \
         después años está si han durante ahora solo mientras antes están año vez tiempo puede gran así \
         uno donde según eso me esto tiene mismo contra otros hay porque ni les nos ese estos hace parte \
         hoy tras",
        coverage: 0.47,
        letters: "áéíñóúü",
        sample: "El ayuntamiento dijo el lunes que el viejo puente se cerrará por reparaciones y que los autobuses \
         pasarán por otra calle hasta que terminen las obras.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("pt"),
        name: "Portuguese",
        aliases: &["por"],
        scripts: &[Script::Latin],
        words: "de a o que e do da em um para com não uma os no se na por mais as dos como mas ao das à pelo pela \
         foi são seu sua ou ser quando muito nos já também está só ele até isso entre tem é sobre anos \
         disse ter após seus segundo há depois afirmou nas aos ainda estão durante ano agora foram antes \
         vez pode outros dois sido contra eles suas onde todos grande numa enquanto este estava sem lhe \
         pelos ela esta essa esse num será porque desde",
        coverage: 0.44,
        letters: "áâãàçéêíóôõú",
        sample: "A câmara municipal disse na segunda-feira que a velha ponte será fechada para obras e que os \
         ônibus vão passar por outro caminho até o fim dos trabalhos.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("it"),
        name: "Italian",
        aliases: &["ita"],
        scripts: &[Script::Latin],
        words: "di e il la che in a per un è del della non con una i le si da gli sono al dei nel alla come anche \
         più ha ma dal lo se delle ci nella o questo ai hanno suo stato dalla essere degli l d dell dopo \
         all fatto su alle affermato cui loro dichiarato ad durante anni secondo persone quando mentre \
         prima detto sua due stata era stati sul modo sia tra nei ancora ora ed aver anno quanto solo \
         sulla questa ciò perché uno aveva altri primo fa nelle quello proprio agli quindi alcuni nell poi \
         dove molto senza contro",
        coverage: 0.46,
        letters: "àèéìòóù",
        sample: "Il comune ha detto lunedì che il vecchio ponte sarà chiuso per riparazioni e che gli autobus \
         passeranno per un’altra strada fino alla fine dei lavori.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("nl"),
        name: "Dutch",
        aliases: &["nld", "dut"],
        scripts: &[Script::Latin],
        words: "de van het een en in is dat op te zijn met voor niet die aan er om ook als dan maar bij nog uit \
         hij wordt door naar heeft over wat ze of je tot kan zich hun deze worden meer was we zei werd \
         hebben dit na volgens jaar nu zal tijdens waar had geen ik al mensen toen eerste zien tegen zoals \
         twee veel kunnen omdat zou nadat alleen moeten onze hoe andere tijd zo nieuwe zegt waren wel gaan \
         mijn hadden werden onder hem toe haar moet iets niets",
        coverage: 0.48,
        letters: "éëï",
        sample: "De gemeente zei maandag dat de oude brug wordt gesloten voor herstel en dat de bussen een andere \
         weg nemen tot het werk klaar is.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("sv"),
        name: "Swedish",
        aliases: &["swe"],
        scripts: &[Script::Latin],
        words: "och i att det som en på är av för den med till inte har de om ett han men var jag från vi så kan \
         när nu skulle man sig eller efter också sin där vid mot ska då under blev hade än sa kommer ha \
         över enligt andra vara bara upp ut år vilket hans säger hur sedan sina vad första in få två mer \
         många även sade genom måste varit fick dem sitt detta tidigare innan bli mycket hon mig mellan \
         någon något hos inom alla deras bland",
        coverage: 0.43,
        letters: "åäöé",
        sample: "Kommunen sade på måndagen att den gamla bron ska stängas för reparation och att bussarna kör en \
         annan väg tills arbetet är klart.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("pl"),
        name: "Polish",
        aliases: &["pol"],
        scripts: &[Script::Latin],
        words: "w i na z się nie do że to o jest jak po za od co tym przez dla które ale czy być był jego już \
         przed ma oraz który tego są może ich także było została tylko jej a u we ze podczas która będzie \
         powiedział roku jednak również według gdy aby by tak jako innych pod on bardzo osób go nad ten \
         jeszcze przy tej można mają byli których którzy lat temu więc lub jeśli bo gdzie mu swoje ona też \
         ponad miejsce swojej mogą stwierdził sposób niż sobie sobotę bez swoim tych celu była ponieważ \
         zeszłym stanie mówi został dwa bardziej ją sprawie ludzi czasu części trzy miało miał dobrze będą \
         wszystkich ramach osoby niego ostatnich zespołu później raz nawet dwóch lata swoją swoich jeden \
         były nadal której kilka wielu którego lecz nadzieję powodu kraju czym czerwcu przypadku mogli \
         takich wieku nich ds wcześniej tygodniu wiele połowie miejscu stało im te piątek siebie \
         powiedziała zostanie wśród swojego pierwszy doszło zostały środki dyrektor zostaną teraz czterech \
         początku więcej nam prezydent którą rzecz meczu około ego trakcie rodziny którym donosi pomoc \
         prawie prowadzenie miesiącu znalazł miesięcy twierdzi jednego mi swój akcji ponownie koniec",
        coverage: 0.35,
        letters: "ąćęłńóśźż",
        sample: "Rada miasta poinformowała w poniedziałek, że stary most zostanie zamknięty na czas remontu i że \
         autobusy pojadą inną drogą do końca prac.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("cs"),
        name: "Czech",
        aliases: &["ces", "cze"],
        scripts: &[Script::Latin],
        words: "a v se na je že s z do o i to k ve pro za by ale si po jsou jako od které jeho který také byl bylo \
         aby už ze při jsem podle až nebo tak má být další není byla co před která jejich řekl když jak \
         bude protože což kdy poté než své ke může roce více jsme kde lidí uvedl kteří jen říká ho let pak \
         takže tím tomu teď měl mezi během byli tento však ještě mu nich této toho jeden tom budou roku \
         sobotu svůj kterou znovu bez nyní svého moc uvedla včetně stále všechny svou proti poslední jde \
         tomto první později ji zemi byly mohou pátek velmi již znamená mají týden místo asi tři velký šest \
         přes měsíců tvrdí něj pod pan rok zatímco poprvé dostal policie právě několik obvinění dodal řekla \
         vítězství práce prohlásil její dobře kvůli stejně vlády několika den ani dříve posledních letech \
         svých hrát příští uvádí díky dalších jednání měli pomoc tým místě mít kdo ráno oblasti jim soudu \
         oznámil téměř dva měsíc vedení našich zprávy ne musí nikdy nad mohl nové červnu rozhodnutí mimo \
         rámci přesně těchto nejsou strany případě lidi ředitel minulý",
        coverage: 0.37,
        letters: "áčďéěíňóřšťúůýž",
        sample: "Město v pondělí oznámilo, že starý most bude uzavřen kvůli opravě a že autobusy pojedou jinou \
         cestou, než práce skončí.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("ro"),
        name: "Romanian",
        aliases: &["ron", "rum", "mo"],
        scripts: &[Script::Latin],
        words: "de și în a la cu pe o că nu din care pentru este un se mai au al ale sunt prin dar fost sau fi ca \
         lui ce s acest această după între cele îi le ei el poate am avea unei unui până fără când să \
         declarat va spus într ani dintre i ar acesta timp putea mult iar cel precum dacă multe însă vor \
         avut l fie are cum doar trebuie acum despre privind înainte cei deoarece foarte pot două își mare \
         conform făcut sale îl așa unor unde potrivit lor asupra către aceste aceasta nici",
        coverage: 0.45,
        letters: "ăâîșț",
        sample: "Primăria a anunțat luni că podul vechi va fi închis pentru reparații și că autobuzele vor circula \
         pe alt drum până la sfârșitul lucrărilor.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("hu"),
        name: "Hungarian",
        aliases: &["hun"],
        scripts: &[Script::Latin],
        words: "a az és hogy nem is egy van volt meg ez de azt csak már még mint el ki ha vagy lesz kell lehet ezt \
         szerint után pedig ami aki mert között minden nagy ahol voltak amely egyik több arra hanem ezért \
         egyre kérdés három ember emberek sőt tehát vele neki saját teljes lett lenne alatt által helyett \
         nélkül senki semmi itt ott mely amelyek ezzel ne nekik őket mondta azonban be amikor majd így \
         azzal úgy miatt első éves olyan előtt akik most két során fel le mivel sem én ő ilyen volna arról \
         nincs ahogy akkor ezek illetve legyen annak való új róla sok évben szerinte közölte nyilatkozta \
         számára ben sikerült óta nagyon miután ellen később második mindig ban amit ország következő es \
         elmúlt elleni korábban felé amerikai történt más át hasonló elmondta közül továbbra szombaton \
         például rá mi rendőrség áll jelentette jól tette évvel állt újra köztük négy hatalmas milyen \
         tartott mellett kapott férfi utolsó csapat fog hét azon újabb tett inkább azután amelyet mielőtt \
         vezető magát szintén hozzá először valamint millió korábbi helyi jelenleg egyetlen vannak vissza \
         politikai egyes egész tovább vezetett másik nyilatkozott sokkal végül további reggel nő miközben \
         hozzátette elnök bejelentette legjobb kormány fontos vagyunk nevű köszönhetően ahhoz jelentős \
         alapján különböző okozott állítja elmondása súlyos helyzet részt múlt elején",
        coverage: 0.38,
        letters: "áéíóöőúüű",
        sample: "A város hétfőn közölte, hogy a régi hidat felújítás miatt lezárják, és a buszok más úton járnak, \
         amíg a munka be nem fejeződik.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("tr"),
        name: "Turkish",
        aliases: &["tur"],
        scripts: &[Script::Latin],
        words: "ve bir bu için da de ile olarak çok daha en ne gibi olan kadar sonra var ancak ama ya o her değil \
         göre ise iki olduğu yeni büyük tarafından oldu kendi dedi şekilde olduğunu mi ki diye hem ilk \
         sadece ayrıca artık çünkü fakat bile henüz üç dört bugün saat kez sahip önemli belirtti kaydetti \
         açıklama bulunan etmek olmak yer aldı alan tek yapıldı üzerine ait başkanı söyledi günü fazla son \
         önce etti devam yıl iyi ilgili şu bazı karşı nasıl ediyor birçok diğer hakkında konusunda yüzde \
         nin ın nın in olması üzere biri arasında eden tüm yapılan göz böyle şöyle bunun onun ben biz veya \
         olacak ifade eğer hiç zaman içinde nedeniyle edildi ettiği kişi bin un den geçen ikinci ye \
         yalnızca geldi ciddi şey deki hafta gelen yaptı yol verdi insanların gelecek daki cumartesi \
         yaptığı yaşındaki dan farklı açık ayında süre uzun gün boyunca altında olmadığını ortaya on yerine \
         birlikte yeniden nde çalışan geri te aynı tekrar bulundu yüksek sonunda ay hâlâ dışı çıkan yardım \
         küçük dahil insan yönelik doğru olsa zor mücadele iddia şunları hiçbir yılında söylüyor başka yok \
         birkaç yüzden başında ev ingiltere milyon önde yi cuma ardından altı öne anda beş açıkladı yapmak \
         genel takımı insanlar elde olmayan neden herhangi olay biraz gerekiyor sonrasında benzer kaldı \
         takım rağmen verdiği kesinlikle dair ifadelerini geliyor ediliyor bulunuyor edilen adlı",
        coverage: 0.30,
        letters: "çğıöşüâî",
        sample: "Belediye pazartesi günü eski köprünün onarım için kapatılacağını ve iş bitene kadar otobüslerin \
         başka bir yoldan gideceğini duyurdu.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("sw"),
        name: "Swahili",
        aliases: &["swa", "swh"],
        scripts: &[Script::Latin],
        words: "ya na wa kwa katika ni la za kuwa cha hii hiyo kama alisema yake hivyo hilo baada zaidi pia bila \
         lakini watu au huo yao ambayo ambao kuhusu mwaka wake sana nchi ili hata moja huu hizo bado kila \
         wakati kutoka kwenye siku kwamba sasa tu miaka sababu mara hadi ikiwa mmoja vya muda mtu pamoja \
         hali huko jinsi kabla juu njia ambalo kwanza ambapo ambaye mpya mwa ilikuwa hili nyingi wengi wao \
         wengine alikuwa hivi nchini kati mwingine walisema huku walikuwa kuna dhidi ana sio wote",
        coverage: 0.39,
        sample: "Baraza la jiji lilisema Jumatatu kwamba daraja la zamani litafungwa kwa ajili ya matengenezo na \
         mabasi yatapita njia nyingine hadi kazi itakapokwisha.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("am"),
        name: "Amharic",
        aliases: &["amh"],
        scripts: &[Script::Ethiopic],
        words: "ነው እና ላይ ውስጥ ግን ነበር ወደ እንደ ይህ ጋር በኋላ አዲስ አቶ ሲሆን መሆኑን ያለው ብቻ ሁሉ አንድ በዚህ ነገር ምክንያት ይሁን ሁለት ሦስት ሌሎች \
         ሁሉም እነዚህ ይህንን እንዲሁም ወቅት አካባቢ መካከል ዙሪያ ጉዳይ ማንኛውም ምንም በተለይ ይገኛል ነኝ ናት ዛሬ ትናንት ትንሽ ጊዜ በጣም በፊት ሰዎች አሁን \
         ደግሞ በላይ ወይም ብዙ ናቸው እስከ ባለፈው ሆኖ ስለ እናም ዓመት አለ የሆነ ሰው ሲል ድረስ ዕለት ሌላ በሌላ ለ እንደሆነ ነበሩ ይሆናል ያሉ ከዚህ \
         የነበረው አልነበረም ተብሏል ገልጸዋል ተናግረዋል ሁኔታ ቤት ከፍተኛ ተስፋ ቦታ ይችላል መንገድ የሆነው ቡድን ያለውን እሱ ቅዳሜ ቃል አመት ብሎ በኩል ልጅ \
         እንዳሉት ሳምንት ጉዳት ደረጃ ያለ ጨምሮ ብለዋል ትልቅ ወር ብሏል ጥሩ አይደለም እንዳለው ቀን ጀምሮ ውጤት ጨዋታ በአንድ ተመሳሳይ ማለት አካል ስር ችግር \
         ተከትሎ ጥቃት ፍርድ መልኩ አይነት ነዉ ሊሆን እንደተናገሩት ስለዚህ ሂደት ገልፀዋል ስራ ሙከራ እንዴት ለማድረግ የሆኑት ሴት ችሏል ቢሆንም ጫና እድል ይህም \
         እንጂ ከፍ ድምፅ አንዳንድ ምክንያቱም እንዳለ የበለጠ ገልጿል የነበረውን ከሆነ በርካታ የሆኑ ትራምፕ ሶስት ነጥብ እኔ ግዜ ውጭ አጋማሽ ክልል ደቂቃ \
         በተጨማሪ ፖሊስ ምርጫ ተናግሯል አንዱ መንግስት አደጋ አድርጓል መሰረት ክፍል ያህል ይሄ መሆን ህግ የሚል ምን ውጪ ቤቱ ይችላሉ ተብሎ ባለፉት እንኳን \
         ግንኙነት",
        coverage: 0.23,
        sample: "የከተማው አስተዳደር ሰኞ ዕለት እንደገለጸው አሮጌው ድልድይ ለጥገና ይዘጋል፤ ሥራው እስኪያልቅ ድረስ አውቶቡሶች በሌላ መንገድ ይሄዳሉ።",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("ckb"),
        name: "Central Kurdish",
        aliases: &["ku", "kur"],
        scripts: &[Script::Arabic],
        words: "لە بە و بۆ کە ئەو ئەم لەسەر لەگەڵ دەکات بوو هەر یان ئەوە کرد نێوان هەروەها دوای هەیە خۆی نەک تا \
         پێش لەلایەن وەک یەک ناو بەڵام نییە دەبێت کردن ئەوەی بووە لێ پێ بن زۆر لەو وتی ڕۆژی ی کردووە لەم \
         ئەمە ساڵی زیاتر سەر بکات بێت دوو کاتی ئێمە پاش ئێستا هۆی من دەدات بوون دەکەن نیە چەند ئەوان بەپێی \
         هەموو دەکرێت هەندێک تر دا ژمارە کوردستان هەمان لەناو ئەگەر هیچ بکەن کراوە",
        coverage: 0.31,
        letters: "ئابپتجچحخدرڕزژسشعغفڤقکگلڵمنهەوۆیێھ",
        sample: "شارەوانی ڕۆژی دووشەممە ڕایگەیاند کە پردە کۆنەکە بۆ چاککردنەوە دادەخرێت و پاسەکان تا تەواوبوونی \
         کارەکە بە ڕێگایەکی تر دەڕۆن.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("lo"),
        name: "Lao",
        aliases: &["lao"],
        scripts: &[Script::Lao],
        segment: Segmentation::Characters,
        shingle: 5,
        sample: "ເທດສະບານເມືອງແຈ້ງໃນວັນຈັນວ່າ ຂົວເກົ່າຈະປິດເພື່ອສ້ອມແປງ ແລະ ລົດເມຈະແລ່ນເສັ້ນທາງອື່ນຈົນກວ່າວຽກຈະແລ້ວ",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("km"),
        name: "Khmer",
        aliases: &["khm"],
        scripts: &[Script::Khmer],
        segment: Segmentation::Characters,
        shingle: 5,
        sample: "សាលាក្រុងបានប្រកាសនៅថ្ងៃចន្ទថា ស្ពានចាស់នឹងត្រូវបិទដើម្បីជួសជុល ហើយរថយន្តក្រុងនឹងធ្វើដំណើរតាមផ្លូវផ្សេងរហូតដល់ការងារចប់",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("my"),
        name: "Burmese",
        aliases: &["mya", "bur"],
        scripts: &[Script::Myanmar],
        segment: Segmentation::Characters,
        shingle: 5,
        sample: "တံတားဟောင်းကို ပြုပြင်ရန် ပိတ်ထားမည်ဖြစ်ပြီး အလုပ်ပြီးသည်အထိ ဘတ်စ်ကားများ အခြားလမ်းမှ သွားမည်ဟု မြို့တော်စည်ပင်က တနင်္လာနေ့တွင် \
         ပြောကြားသည်။",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("da"),
        home: Some(Lang::from_table("no")),
        name: "Danish",
        aliases: &["dan"],
        scripts: &[Script::Latin],
        words: "og i at det er en til af på for de den med der ikke som har et fra han var om men vi jeg sig så \
         kan også eller efter blev ved skal når hun blive mod ud været denne nu mere end hvor havde \
         hvordan hvorfor dig uden både således derfor dog tilbage sammen mellem nogen kommer mandag gennem \
         blandt to tre sagde være over vil deres op år have sin hans ville flere hvis da bliver ifølge \
         sidste mange alle første siger mig før vores andre meget blevet mens man få gør selv kunne fik \
         disse dem hvilket hele nogle helt bare ingen hvad os noget kun igen dette andet",
        coverage: 0.46,
        letters: "æøåé",
        sample: "Kommunen sagde mandag, at den gamle bro bliver lukket på grund af reparation, og at busserne \
         kører en anden vej, indtil arbejdet er færdigt.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("no"),
        name: "Norwegian",
        aliases: &["nb", "nn", "nor", "nob", "nno"],
        scripts: &[Script::Latin],
        words: "og i det er på som en til å at for av ikke med har de den et han var om men fra jeg seg så kan \
         også eller etter ble ved skal når hun blir mot ut vært denne nå mer enn hvor hadde vil ein eg \
         ikkje frå ho dei vere blei kommer hvordan hvorfor meg deg oss dem inn fram tilbake sammen \
         imidlertid derfor uten både slik mandag etterpå ingen eit sa ei berre andre då ha år over no vi \
         hans meir seier bli sin kunne noko vore kva dette to siden før noen bare være da opp noe flere \
         mange ifølge få sier må alle hele blitt fikk disse der ville mens mye første gjennom siste vart \
         sjølv mykje fleire deira desse sidan hva",
        coverage: 0.45,
        letters: "æøåéòô",
        sample: "Kommunen sa mandag at den gamle broen blir stengt for reparasjon, og at bussene kjører en annen \
         vei til arbeidet er ferdig.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("fi"),
        name: "Finnish",
        aliases: &["fin"],
        scripts: &[Script::Latin],
        words: "ja on ei se että oli hän mutta ovat joka myös niin kun kuin mukaan ole voi sen mitä jo vain ollut \
         olla sitä tai jos nyt hänen sekä vuoden eivät jotka kanssa siitä tämä he me siihen siinä tässä \
         tätä niitä joita joiden josta koko kaksi kolme vuosi päivä aina aivan esimerkiksi kertaa mukana \
         muut myöhemmin paljon saa saada tehdä tulee tuli uusi uuden yhden yli voivat pitää olleet hänelle \
         häntä minä meidän ihmiset itse ihan eli eikä ettei joko sanoi jälkeen vuonna kuitenkin sanoo jossa \
         ennen mikä kertoi yksi olevan kuten aikana jonka tämän kertoo viime jotta koska enemmän vielä muun \
         muassa siis kautta tänä noin olisi hänellä sillä välillä asti kaikki vuotta hyvin heidän \
         lauantaina vastaan sitten aiemmin vaikka kuinka totesi sai enää viikolla juuri tällä alueella \
         perjantaina viimeisen lisäsi olen lisää presidentti jota kohtaa vuotias olivat päivän teki toisen \
         viikon aiheuttaa antaa olemaan ensi eri ensimmäistä antoi jotain takaisin lähes ilman olevansa \
         miljoonaa ilmoitti todella lopulta kuussa kahden samalla vastasi aika voinut tulisi tarkoittaa \
         odotetaan maailman yhtä kyseessä ne yhä toinen kuukautta kohti antanut aikaa mennä poliisi tullut \
         edelleen oikeuden kauden jolla voiton tapahtui erittäin koskaan tilanne maassa tehnyt kesäkuussa \
         päätös poika päivää nämä joihin toisella luvulla näiden lisäksi kohtaan sijaan lähellä torstaina \
         päässä klo joten tiedottaja ulos tapahtunut niiden poliisin korkeimman todennäköisesti perusteella \
         olleen muiden dollaria pistettä olemme kuusi",
        coverage: 0.27,
        letters: "äöå",
        sample: "Kaupunki kertoi maanantaina, että vanha silta suljetaan korjauksen vuoksi ja että bussit ajavat \
         toista tietä, kunnes työ on valmis.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("sk"),
        name: "Slovak",
        aliases: &["slk", "slo"],
        scripts: &[Script::Latin],
        words: "a v sa na je že s z do o i to k vo pre za by ale si po sú ako od ktoré jeho ktorý tiež bol bolo \
         aby už zo pri som podľa až alebo tak má byť nie bola čo pred ktorá ich však keď aj povedal bude \
         len viac počas tom toho ktorí sme roku boli tento pričom so ľudí ešte pretože ho potom teraz ak \
         svoj povedala uviedol jej medzi môže hovorí bez kde mu nich ani cez rokov kto tú tým toto musí \
         sobotu svojho proti budú ju či veľmi svojich oblasti mal uviedla neskôr tím jeden ktorej niekoľko \
         svoje piatok rok presne svoju tomto vrátane ide skôr týždeň krajine tri dostal môžu im tu dodal \
         tohto zápas pokračovať skupiny stále svojej mali mať ktorú posledných začiatku rámci čase minulý \
         dostať niečo tejto všetkých nedeľu takmer víťazstvo pod šesť ste júni súvislosti túto mesiacov deň \
         tomu hrať dvoch prvýkrát druhý vďaka riaditeľ napríklad máme nám veľký nad štvrtok polícia ráno \
         mieste správy kým amerického dolárov mohol znovu podporu posledné najmä súčasnosti mohlo mimo \
         strany znamená stal ktorých minulosti tieto konca domov spoločnosť miesto musia krok spoločnosti \
         spôsob svojom vonku času majú hodín nás",
        coverage: 0.37,
        letters: "áäčďéíĺľňóôŕšťúýž",
        sample: "Mesto v pondelok oznámilo, že starý most bude zatvorený pre opravu a že autobusy pôjdu inou \
         cestou, kým sa práce neskončia.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("hr"),
        name: "Croatian",
        aliases: &["hrv", "bs", "bos"],
        scripts: &[Script::Latin],
        words: "i je u na da se za od su s o koji što ne kako to a će bi iz nije ili kao do koja samo još te već \
         sam ali prije bio može koje nakon također tijekom gdje bez biti kada ima po tko jer tjedan dvije \
         vrijeme riječ cijeli uspjeh vjerojatno zahtjev čovjek predsjednik posljednji ponedjeljak srijeda \
         nedjelja svijet svijeta vrijednost uspio htio vidjeti djeca liječnik obitelj izvješće izvijestio \
         tvrtka tvrtke tijelo sigurnost rješenje mjera primjer dijelu dijela ovdje njegov mjesta ljeta \
         uvijek kolovoza rujna listopada studenoga siječnja veljače ožujka travnja svibnja lipnja srpnja \
         europske europe rekao više zbog godine dok no izjavio smo sve prema sada nekoliko oko koju ga \
         jedan bilo li poslije vijeće mjesto dio uvjet tisuća sati kazao priopćio europski bila kod među \
         posto nešto unatoč sukladno bih svoje",
        coverage: 0.35,
        letters: "čćđšž",
        sample: "Grad je u ponedjeljak priopćio da će stari most biti zatvoren zbog popravka i da će autobusi \
         voziti drugim putem dok se radovi ne završe.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("sr"),
        home: Some(Lang::from_table("hr")),
        name: "Serbian",
        aliases: &["srp"],
        scripts: &[Script::Cyrillic, Script::Latin],
        words: "и је у на да се за од су са о који што не како то а ће би из није или као до која само још већ сам \
         али пре био може које након после такође током где без бити када има по ко јер две време шта овај \
         цео успех вероватно захтев човек последњи понедељак среда недеља свет света вредност успео хтео \
         видети деца лекар породица извештај известио компанија компаније тело безбедност решење мера \
         пример делу дела његов места лета августа септембра октобра новембра децембра јануара фебруара \
         марта априла маја јуна јула европске европе хиљаде општина рекао године више због све смо каже \
         неколико док међутим према тако било сада изјавио ли око један он му га ми увек овде место део \
         услов хиљада часова председник саопштио европски била код међу одсто нешто упркос против своје реч \
         власти недеље људи уз i je u na da se za od su sa o koji što ne kako to a će bi iz nije ili kao do \
         koja samo još već sam ali pre bio može koje nakon posle takođe tokom gde bez biti kada ima po ko \
         jer dve vreme šta ovaj ceo uspeh verovatno zahtev čovek poslednji ponedeljak sreda nedelja svet \
         sveta vrednost uspeo hteo videti deca lekar porodica izveštaj izvestio kompanija kompanije telo \
         bezbednost rešenje mera primer delu dela njegov mesta leta avgusta septembra oktobra novembra \
         decembra januara februara marta aprila maja juna jula evropske evrope hiljade opština rekao godine \
         više zbog sve smo kaže nekoliko dok međutim prema tako bilo sada izjavio li oko jedan on mu ga mi \
         uvek ovde mesto deo uslov hiljada časova predsednik saopštio evropski bila kod među odsto nešto \
         uprkos protiv svoje reč vlasti nedelje ljudi uz",
        coverage: 0.33,
        letters: "čćđšžабвгдђежзијклљмнњопрстћуфхцчџш",
        sample: "Градска управа је у понедељак саопштила да ће стари мост бити затворен због поправке и да ће \
         аутобуси ићи другим путем док се радови не заврше.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("ca"),
        name: "Catalan",
        aliases: &["cat"],
        scripts: &[Script::Latin],
        words: "de la i a el que en les els per un una amb és no del al va més es són com ha han ser pel dels seu \
         seva però també aquest aquesta o entre on ja què sobre fins molt anys l d s després se van segons \
         tot als quan fer hi si ara any mentre està durant pot estat li des perquè dos ho seus això havia \
         fa té fet encara persones temps només abans gran era dia haver ens aquests qui cada nostra altres",
        coverage: 0.49,
        letters: "àçéèíïóòúü",
        sample: "L’ajuntament va dir dilluns que el pont vell es tancarà per obres i que els autobusos passaran \
         per un altre carrer fins que s’acabi la feina.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("af"),
        name: "Afrikaans",
        aliases: &["afr"],
        scripts: &[Script::Latin],
        words: "die van en in is het dat nie wat te om vir met op sy was hy aan hulle ook deur as na sal kan uit \
         by word oor daar maar haar ons hierdie moet meer of wees toe n se gesê dit tot sê een gaan nadat \
         ek ander laat al jaar hoe teen baie soos terwyl mense wanneer nou twee waar my daardie volgens \
         eerste nuwe nog wil hom so omdat kon gehad",
        coverage: 0.49,
        letters: "éèêëîïôöúû",
        sample: "Die stad het Maandag gesê dat die ou brug vir herstelwerk gesluit sal word en dat die busse met \
         ’n ander pad sal ry totdat die werk klaar is.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("ms"),
        home: Some(Lang::from_table("id")),
        name: "Malay",
        aliases: &["msa", "may", "zsm"],
        scripts: &[Script::Latin],
        words: "yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke kerana tersebut boleh \
         ada mereka lebih kata telah oleh sebagai menjadi kami bahawa atau apabila seorang adalah beliau \
         tahun sudah para antara hanya ramai daripada kepada namun turut kes maklumat eropah england \
         perancis bandar lelaki kanak ahli malah berkenaan pelbagai pegawai akhbar laman menerusi bermula \
         kelab jurulatih setiausaha bilion peratus mahkamah undi pilihan perlawanan manakala jabatan \
         jawatankuasa kemudian dilakukan sejak bukan polis syarikat pejabat kereta wang sukan berumur \
         sebarang mahu bagaimanapun bekas cuba universiti kebangsaan peguam ogos mac jun julai ringgit \
         jawatan pasukan anda tiada sahaja masih hari satu tetapi berkata orang dia selepas seperti dua \
         beberapa lagi bagi masa sama ia mungkin sebelum perlu sedang mana dapat tempat banyak lain \
         memberi berlaku ketika semasa semula tentang baru mempunyai apa sekarang kali jika pertama kita \
         lalu ialah melalui setelah secara sehingga hendaklah kerajaan susulan pihak iaitu katanya supaya \
         berusia sekiranya",
        coverage: 0.39,
        letters: "é",
        sample: "Majlis bandar raya berkata pada hari Isnin bahawa jambatan lama itu akan ditutup kerana kerja \
         pembaikan dan bas akan melalui jalan lain sehingga kerja siap.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("az"),
        name: "Azerbaijani",
        aliases: &["aze", "azj"],
        scripts: &[Script::Latin],
        words: "və bir bu üçün ilə də olan edir çox daha ki o olub var sonra kimi isə onun ən hər ya bütün ildə \
         edib bildirib qədər lakin görə edən etmək olaraq baş etdi belə son biz öz idi deyə il onlar heç \
         edərək dedi böyük yeni qarşı bildirdi davam iki olduğunu olduğu mən tərəfindən olunan deyil gün \
         zamanı bilər barədə bağlı onların nə olmaq haqqında üzrə nəfər ildən bunun həm amma əgər hələ \
         yalnız ancaq artıq olur da günü ci şəkildə ilk dəfə əvvəl daxil yüksək zaman yaxşı qeyd neçə əldə \
         biri irəli geri nin oldu əsasən etdiyi mübarizə yaşlı əlavə indi ikinci şənbə şey ayında həftə ona \
         başqa istifadə keçən cümə bizim səbəb edə ola arasında yenidən olacaq qeyri olmaqla edilən saat az \
         açıq qəbul çünki təşkil üç həmin sözlərinə cü etməsi həmçinin ay əsas onu hesab vaxt edəcək in \
         bunu özünü dərəcədə iyun etməyə gələn qalan ın ilin sahib növbəti milyon müdafiə axşamı təmin \
         müəyyən verdiyi digər güclü yox necə geniş çıxış təqdim olmayan fərqli ərzində başa sayı \
         əhəmiyyətli nəticəsində doğru təxminən xal oyunda gələcək kömək cı məhkəmə verən qadın dörd bazar",
        coverage: 0.31,
        letters: "əçğıöşü",
        sample: "Şəhər rəhbərliyi bazar ertəsi bildirib ki, köhnə körpü təmir üçün bağlanacaq və iş bitənə qədər \
         avtobuslar başqa yolla gedəcək.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("be"),
        name: "Belarusian",
        aliases: &["bel"],
        scripts: &[Script::Cyrillic],
        words: "і ў на не з што у да па як за гэта ад для яго але ён быў каб было таксама ці пра каля гэтым якія \
         пасля быць або яны а калі які таго сказаў больш мы будзе аб я былі якая годзе іх так тым можа была \
         вельмі праз дзе года тое яшчэ толькі час таму гэтага ўсё яўляецца перад цяпер сябе той гэты \
         некалькі будуць чалавек мае хто із са сваёй яна чым яе могуць суботу заявіў пад мінулым год ім \
         ёсць без свой якую сваю атрымаў сказала людзей гады дзень бо заявіла месца усё якое проста адзін \
         ўжо некалькіх боку іншых свае пачатку тыдні тры шмат павінны пятніцу пры гэтай якіх працу апошнія \
         паміж гадоў некаторыя два раней перш выніку якой яму пакуль свайго вы гульні кажа супраць амаль \
         менавіта іншыя чэрвені казаў дадаў часу ва краіне канцы сваім месяцы гадовы паведаміў працягу \
         паведамляе самых тых краіны атрымаць нават зноў трэба стала сем падтрымку падчас ўсіх азначае \
         разам яўляюцца тут месяцаў ліку наступным такія нас чаго чацвер ер зрабіў над ўдар паліцыя месцы \
         колькасць кампаніі праблемы долараў групы якасці",
        coverage: 0.37,
        letters: "абвгдеёжзійклмнопрстуўфхцчшыьэюя",
        sample: "Гарадскія ўлады паведамілі ў панядзелак, што стары мост будзе зачынены на рамонт і што да канца \
         работ аўтобусы пойдуць па іншай дарозе.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("mk"),
        name: "Macedonian",
        aliases: &["mkd", "mac"],
        scripts: &[Script::Cyrillic],
        words: "на и да во се за од е со не што ќе ги го тоа дека по но како до беше или кои биде само има тој \
         кој уште нема ова овие најмногу пред меѓу ја рече а откако многу кога еден тие може исто време \
         повеќе сѐ изјави при така додека година сега треба неколку му години според им околу бил оваа \
         затоа беа кон таа па една имаат сите која кое оние биле овој нивните",
        coverage: 0.39,
        letters: "абвгдѓежзѕијклљмнњопрстќуфхцчџшѐѝ",
        sample: "Градот во понеделникот соопшти дека стариот мост ќе биде затворен поради поправка и дека \
         автобусите ќе возат по друг пат додека не заврши работата.",
        ..SPACED
    },
    Language {
        lang: Lang::from_table("kk"),
        name: "Kazakh",
        aliases: &["kaz"],
        scripts: &[Script::Cyrillic],
        words: "және бұл мен да де үшін бір деп бойынша болды осы екі ол емес жылы деген туралы болып кейін сол \
         қазақстан оның келген бар барлық бірақ деді болған өз сияқты пен күні ал арқылы біз бірнеше өзінің \
         үлкен олар айтты ретінде адам дейін жатқан өткен мүмкін соңғы басқа оны кезінде жаңа бұрын болады \
         олардың ең алайда еді оған жоқ осыған сондай тек бірге керек қазір қатысты айтуынша көп жыл алды \
         қарсы кезде былай ақ немесе бірінші ие екенін алу себебі беру болатын жақсы ішінде бас қайта \
         жоғары бойы өтті не жатыр үш соң келді тағы екінші әлі алған жұмыс жылдың жерде хабарлады бірі \
         бері ойын қарай байланысты жылдан төрт рет алып сенбі өте айында болса берді түрде мырза басты \
         алады болуы ғана жауап тыс атап сәйкес адамдар қатты қатар адамға көмек уақыт қалды мәлімдеді \
         екендігін қарағанда жағдайда шыққан ашық болғанын уақытта тұратын ай жүрген сондықтан басында \
         әрекеті орын аптада келесі жатқанда мүмкіндік алдында жасады сағат алға түсіп бізге полиция \
         жастағы оңтүстік әсер көрсеткен көрсетті минут дауыс алты жұма берген арасындағы жеңіске кеткен \
         маңызды әрі бұрынғы кетті",
        coverage: 0.25,
        letters: "абвгдежзийклмнопрстуфхцчшщъыьэюяёәғқңөұүһі",
        sample: "Қала әкімдігі дүйсенбі күні ескі көпір жөндеу үшін жабылатынын және жұмыс біткенше автобустар \
         басқа жолмен жүретінін хабарлады.",
        ..SPACED
    },
];
